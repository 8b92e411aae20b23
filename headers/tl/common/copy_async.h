// Asynchronous copies from global to shared memory (cp.async).
#pragma once
#include "copy.h"

namespace tl {

// The bytes of the n elements at `first` that are before the end of the row.
template <class View, int n> TL_DEVICE int bytes_inside(const View& view, int first) {
  constexpr int size = sizeof(typename View::type);
  if (!View::is_predicated(View::last)) return n * size;
  if (unsigned(first) >= unsigned(view.extent[View::last])) return 0;
  return View::has_whole_rows ? n * size : min(n, view.extent[View::last] - first) * size;
}

// Cache policy of a copy of `bytes` bytes: the default, or evict-first in L2 for data that is read once.
struct ReadAgain {
  template <int bytes> TL_DEVICE void start(void* to, const void* from, int source_bytes) const {
    cp_async<bytes>(to, from, source_bytes);
  }
};
struct ReadOnce {
  template <int bytes> TL_DEVICE void start(void* to, const void* from, int source_bytes) const {
    cp_async_once<bytes>(to, from, source_bytes);
  }
};

// Copies one chunk of `bytes` bytes; out-of-bounds bytes are zero-filled.
template <int bytes, class View, class Tile, class Reads>
TL_DEVICE void copy_async_chunk(const Place<View>& from, Tile& to, int row, int col, const Reads& reads) {
  constexpr int vector = bytes / static_cast<int>(sizeof(typename Tile::type));
  const int count = bytes_inside<View, vector>(from.view, wrapping_add(from.offset[View::last], col));
  if constexpr (View::rank == 1)
    reads.template start<bytes>(to.at(col), from.address(col), count);
  else
    reads.template start<bytes>(to.at(row, col), from.address(row, col),
                                from.view.inside(0, wrapping_add(from.offset[0], row)) ? count : 0);
}
// Copies the chunks of one column of the tile, every `step` rows: all addresses are at constant distances from the
// first one on each side.
template <int step, int iterations, class View, class Tile, class Reads>
TL_DEVICE void copy_async_column(const Place<View>& from, Tile& to, int row, int col, const Reads& reads) {
  constexpr int bytes = 16, vector = bytes / static_cast<int>(sizeof(typename Tile::type));
  const int count = bytes_inside<View, vector>(from.view, wrapping_add(from.offset[View::last], col));
  const int64_t distance = from.view.stride[0] * step;
  auto* const target = to.at(row, col);
  auto* const source = from.address(row, col);
  TL_UNROLL
  for (int iteration = 0; iteration < iterations; ++iteration)
    reads.template start<bytes>(target + iteration * step * Tile::pitch, source + iteration * distance,
                                from.view.inside(0, wrapping_add(from.offset[0], row + iteration * step)) ? count : 0);
}
// The 16-byte path is fully unrolled for speed; the narrower ones are unrolled little to limit code size.
template <int threads, int bytes, class View, class Tile, class Reads>
TL_DEVICE void copy_async_chunks(const Place<View>& from, Tile& to, const Reads& reads) {
  using Pieces = ChunksOf<threads, Tile, bytes / static_cast<int>(sizeof(typename Tile::type))>;
  if constexpr (bytes == 16 && Pieces::whole_rows && Pieces::count % threads == 0 &&
                rows_lie_alike<Tile, threads / Pieces::in_row>) {
    copy_async_column<threads / Pieces::in_row, Pieces::iterations>(from, to, Pieces::row(0), Pieces::col(0), reads);
  } else if constexpr (bytes == 16) {
    TL_UNROLL
    for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
      if (Pieces::valid(iteration))
        copy_async_chunk<bytes>(from, to, Pieces::row(iteration), Pieces::col(iteration), reads);
  } else {
    TL_UNROLL_LITTLE
    for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
      if (Pieces::valid(iteration))
        copy_async_chunk<bytes>(from, to, Pieces::row(iteration), Pieces::col(iteration), reads);
  }
}

// A target-specific copy that replaces cp.async; started() returns whether it was issued. (cdna/direct.h)
template <int threads, class View, class Tile> struct DirectCopy {
  static TL_DEVICE bool started(const Place<View>&, Tile&) { return false; }
};

// Issues the copy of the tile at `from` into `to`, which has the same shape. Uses 16-byte chunks if the alignment of
// the rows allows it, else narrower ones. Rows that cp.async cannot read for their alignment are copied synchronously,
// element by element. Called by: `threads` threads of the block, from thread 0 on. The caller commits and waits;
// tl::cp_async_pipeline does both.
template <int threads, class View, class Tile, class Reads = ReadAgain>
TL_DEVICE std::enable_if_t<!goes_in_bytes<View, Tile>> copy_async(const Place<View>& from, Tile& to,
                                                                  const Reads& reads = {}) {
  static_assert(View::rank == Tile::rank, "slice the other dimensions first: A(b, tl::all, tl::all).tile(i, j)");
  static_assert(std::is_same<typename View::T, typename Tile::type>::value,
                "an asynchronous copy does not convert: use tl::copy");
  if (DirectCopy<threads, View, Tile>::started(from, to)) return;
  constexpr int size = sizeof(typename Tile::type), widest = Tile::chunk_bytes;
  constexpr int known = smaller(View::alignment, widest), middle = smaller(widest, 8), narrowest = size > 4 ? size : 4;
  if constexpr (known >= 4) {
    copy_async_chunks<threads, known>(from, to, reads);
  } else if constexpr (View::alignment != 0 || widest < 4) {
    copy_elements<threads, widest, Tile>(from.template with_row_start<size>(), to);
  } else {
    if (from.aligned(widest))
      copy_async_chunks<threads, widest>(from, to, reads);
    else if (middle < widest && from.aligned(middle))
      copy_async_chunks<threads, middle>(from, to, reads);
    else if (narrowest < middle && from.aligned(narrowest))
      copy_async_chunks<threads, narrowest>(from, to, reads);
    else
      copy_elements<threads, widest, Tile>(from.template with_row_start<size>(), to);
  }
}
template <int threads, class From, class To, class Reads = ReadAgain>
TL_DEVICE std::enable_if_t<goes_in_bytes<From, To>> copy_async(const From& from, To&& to, const Reads& reads = {}) {
  auto&& bytes = in_bytes(to);
  copy_async<threads>(in_bytes(from), bytes, reads);
}

// The same for data that this block reads `once`: L2 evicts it before data that other blocks read again. Has two loops,
// because a cache policy selected at run time costs more than no policy.
template <int threads, class From, class To>
TL_DEVICE void copy_async_once(const From& from, To&& to, bool once = true) {
  const int64_t bytes = from.view.extent[0] * from.view.stride[0] * int64_t(sizeof(typename From::type));
  if (once && spares_l2(bytes))
    copy_async<threads>(from, to, ReadOnce{});
  else
    copy_async<threads>(from, to);
}

// Copies one chunk of a row that starts at `from`; zero-fills it if it is not wanted or out of bounds. cp.async reads
// aligned chunks of 4, 8 or 16 bytes; other chunks are copied synchronously.
template <int bytes, class View, class Tile>
TL_DEVICE void copy_row_chunk(const View& view, At<View::rank> from, bool wanted, Tile& to, int row, int col) {
  constexpr int size = sizeof(typename Tile::type), vector = bytes / size;
  auto& at = from.coordinate;
  at[View::last] = wrapping_add(at[View::last], col);
  TL_UNROLL
  for (int d = 0; d < View::last; ++d) wanted = wanted && view.inside(d, at[d]);
  if (bytes >= 4 && (View::alignment != 0 || view.aligned(at, bytes)))
    cp_async<bytes >= 4 ? bytes : 4>(to.at(row, col), view.address(at),
                                     wanted ? bytes_inside<View, vector>(view, at[View::last]) : 0);
  else
    chunk<vector>(to, row, col) = view.template with_row_start<size>().template packet<vector>(at, wanted);
}

struct EveryRow {
  TL_DEVICE bool operator()(int) const { return true; }
};
// tl::copy_async for gathered rows: row i of `to` is read from the coordinate `place(i)` (a tl::at) of `from`. Rows for
// which wanted(i) is false are zero-filled, and place(i) is not evaluated.
template <int threads, class View, class Tile, class PlaceOf, class Wanted = EveryRow>
TL_DEVICE void copy_rows_async(const View& from, Tile& to, const PlaceOf& place, const Wanted& wanted = {}) {
  static_assert(std::is_same<typename View::T, typename Tile::type>::value, "an asynchronous copy does not convert");
  constexpr int size = sizeof(typename Tile::type);
  constexpr int widest = smaller(View::alignment == 0 ? 16 : View::alignment, Tile::chunk_bytes);
  constexpr int bytes = widest < size ? size : widest;
  using Pieces = ChunksOf<threads, Tile, bytes / size>;
  TL_UNROLL_LITTLE
  for (int iteration = 0; iteration < Pieces::iterations; ++iteration) {
    if (!Pieces::valid(iteration)) continue;
    const int row = Pieces::row(iteration);
    const bool copied = wanted(row);
    copy_row_chunk<bytes>(from, copied ? place(row) : At<View::rank>{}, copied, to, row, Pieces::col(iteration));
  }
}

}  // namespace tl
