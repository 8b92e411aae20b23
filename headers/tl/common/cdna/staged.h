// Register-staged copies of tiles from global to shared memory, for pipelines on targets without cp.async: the next
// tile is in registers while the current one is used.
#pragma once
#include "../copy.h"

namespace tl {

// Raw bytes in registers, as 32-bit words if possible: no instruction unpacks a load before its wait.
template <int bytes> struct StagedBits {
  uint32_t word[bytes / 4];
};
template <> struct StagedBits<2> {
  uint16_t bits;
};
template <> struct StagedBits<1> {
  uint8_t bits;
};

// tl::Chunks of `together` neighbouring rows: a thread has these in consecutive iterations.
template <int threads, int rows, int cols, int vector, int together> struct ChunksOfRows {
  using Groups = Chunks<threads, rows / together, cols, vector>;
  static constexpr int iterations = Groups::iterations * together;
  static_assert(rows % together == 0, "a tile is a whole number of groups of rows");
  static TL_DEVICE int row(int iteration) {
    return Groups::row(iteration / together) * together + iteration % together;
  }
  static TL_DEVICE int col(int iteration) { return Groups::col(iteration / together); }
  static TL_DEVICE bool valid(int iteration) { return Groups::valid(iteration / together); }
};

// The registers of `threads` threads for a tile of rows x cols, in pieces of up to 16 bytes, of `together` neighbouring
// rows per thread: written by tl::load, and stored by tl::store to a tile of element type As. Pieces of several rows
// have up to 8 bytes where threads would not have equally many of 16.
template <class T, int rows, int cols, int threads, class As = T, int together = 1> struct Staged {
  static constexpr int widest = sizeof(T) < sizeof(As) ? sizeof(As) : sizeof(T);
  static constexpr int most = smaller(power_of_two_in(cols), 16 / widest);
  static constexpr bool is_halved = together > 1 && rows / together*(cols / most) % threads != 0;
  static constexpr int vector = is_halved ? most / 2 : most, bytes = vector * int(sizeof(T));
  using Pieces = ChunksOfRows<threads, rows, cols, vector, together>;
  StagedBits<bytes> piece[Pieces::iterations];
};
template <class T, int n, int threads, class As = T> using Staged1D = Staged<T, 1, n, threads, As>;

// Whether each piece of `bytes` bytes is entirely inside or outside the tensor: aligned pieces of dense rows, of
// elements that are not packed.
template <class View, int bytes>
constexpr bool has_whole_pieces = !is_packed<typename View::T> && View::alignment >= bytes && bytes >= 4 &&
                                  (View::has_whole_rows || !View::is_predicated(View::last));

// `vector` elements of the tile at `from`, as bits; zero out of bounds.
template <int vector, class View> TL_DEVICE auto staged_piece(const Place<View>& from, int row, int col) {
  constexpr int bytes = vector * static_cast<int>(sizeof(typename View::T));
  return bit_cast<StagedBits<bytes>>(Vec<typename View::T, vector>(value(chunk<vector>(from, row, col))));
}
// A tile of whole pieces as a buffer that starts at its first element. Rows beyond the tensor are outside the buffer,
// so the hardware returns zeros for them; columns are tested per lane.
template <class View> struct StagedBuffer {
  static constexpr int size = sizeof(typename View::T), last = View::last;
  const Place<View>& from;
  uint32_t bytes;

  TL_DEVICE StagedBuffer(const Place<View>& place, int rows) : from(place) {
    bytes = static_cast<uint32_t>(buffer_bytes);
    if constexpr (View::is_predicated(0)) {
      const int inside = smaller(from.view.extent[0] - from.offset[0], rows);
      bytes = static_cast<uint32_t>(inside) * static_cast<uint32_t>(from.view.stride[0]) * size;
    }
  }
  // Whether 32-bit buffer offsets can address the whole tile; with predicated rows, whether the tile starts inside the
  // tensor, at no negative column (the buffer would end within the tensor's last row), and rows do not overlap.
  static TL_DEVICE bool reaches(const Place<View>& place, int rows, int cols) {
    const int64_t over_rows = View::rank == 1 ? 0 : rows * place.view.stride[0];
    if ((over_rows + cols * place.view.stride[last]) * size >= buffer_bytes) return false;
    if (!View::is_predicated(0)) return true;
    const bool starts_inside =
        place.offset[0] >= 0 && place.offset[0] <= place.view.extent[0] && place.offset[last] >= 0;
    return starts_inside && (View::rank == 1 || place.view.stride[0] >= place.view.extent[last]);
  }
  TL_DEVICE auto* start() const {
    if constexpr (View::rank == 1)
      return from.address(0);
    else
      return from.address(0, 0);
  }
  // The byte offset of the piece at a row and column; past the buffer's end if it is out of bounds.
  TL_DEVICE uint32_t offset(int row, int col) const {
    const auto& stride = from.view.stride;
    if constexpr (View::rank == 1) {
      return uint32_t(col) * uint32_t(stride[0]) * size;
    } else {
      const uint32_t place = (uint32_t(row) * uint32_t(stride[0]) + uint32_t(col) * uint32_t(stride[1])) * size;
      return from.view.inside(1, wrapping_add(from.offset[1], col)) ? place : static_cast<uint32_t>(buffer_bytes);
    }
  }
  template <class Bits> TL_DEVICE Bits load(int row, int col) const {
    return load_inside<Bits>(start(), bytes, offset(row, col));
  }
};

// Issues the loads of the tile at `from`; the first use of the registers waits for them. Out-of-bounds elements are
// zero. `is_reached`: StagedBuffer::reaches is known to hold.
// Called by: `threads` threads of the block, from thread 0 on.
template <bool is_reached = false, class View, class T, int rows, int cols, int threads, class As, int together>
TL_DEVICE void load(const Place<View>& from, Staged<T, rows, cols, threads, As, together>& to) {
  using To = Staged<T, rows, cols, threads, As, together>;
  using Pieces = typename To::Pieces;
  static_assert(std::is_same<typename View::T, T>::value, "loads do not convert: tl::store does");
  const auto load_all = [&](const auto& place) TL_INLINED_LAMBDA {
    if constexpr (has_whole_pieces<std::decay_t<decltype(place.view)>, To::bytes>) {
      using Buffer = StagedBuffer<std::decay_t<decltype(place.view)>>;
      if (is_reached || Buffer::reaches(place, rows, cols)) {
        const Buffer buffer(place, View::rank == 1 ? cols : rows);
        TL_UNROLL
        for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
          if (Pieces::valid(iteration))
            to.piece[iteration] =
                buffer.template load<StagedBits<To::bytes>>(Pieces::row(iteration), Pieces::col(iteration));
        return;
      }
    }
    TL_UNROLL
    for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
      if (Pieces::valid(iteration))
        to.piece[iteration] = staged_piece<To::vector>(place, Pieces::row(iteration), Pieces::col(iteration));
  };
  if constexpr (View::alignment != 0) {
    load_all(from);
  } else {
    if (from.aligned(To::bytes))
      load_all(from.template with_row_start<To::bytes>());
    else
      load_all(from.template with_row_start<sizeof(T)>());
  }
}

// The same of a tile that starts inside the tensor and that 32-bit offsets reach: its whole pieces are buffer loads.
template <class View, class To> TL_DEVICE void load_buffer(const Place<View>& from, To& to) { load<true>(from, to); }

// Stores the loaded tile, converted to the element type of `to`. Called by: the threads that loaded it. Contains no
// barrier: one must follow before other threads read `to`.
template <class T, int rows, int cols, int threads, class As, class Tile>
TL_DEVICE void store(const Staged<T, rows, cols, threads, As>& from, Tile& to) {
  using From = Staged<T, rows, cols, threads, As>;
  using Pieces = typename From::Pieces;
  static_assert(Tile::rows == rows && Tile::cols == cols, "the staged tile has the shape of the shared one");
  static_assert(std::is_same<typename Tile::type, As>::value, "the staged tile's As is the shared tile's element type");
  TL_UNROLL
  for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
    if (Pieces::valid(iteration))
      chunk<From::vector>(to, Pieces::row(iteration), Pieces::col(iteration)) =
          bit_cast<Vec<T, From::vector>>(from.piece[iteration]);
}

}  // namespace tl
