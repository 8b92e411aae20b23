// Tiles in shared memory. The swizzle is part of the type, so that every access applies it.
#pragma once
#include "index.h"
#include "shape.h"
#include "spread.h"
#include "swizzle.h"

namespace tl {

// A row-major tile of rows x cols elements. If the swizzle span is narrower than a row, the tile is stored slab by
// slab.
template <class T, int rows_, int cols_, class Swizzle = NoSwizzle> struct alignas(Swizzle::alignment) SharedTile {
  using type = T;
  static constexpr int rank = 2, rows = rows_, cols = cols_;
  static constexpr int row_bytes = bytes_of<T>(cols);
  static constexpr int slab_cols = Swizzle::span > 0 ? elements_in<T>(Swizzle::span) : cols;
  static constexpr int pitch = slab_cols + elements_in<T>(Swizzle::padding);  // in elements
  // A row consists of contiguous, aligned chunks of this many bytes.
  static constexpr int chunk_bytes = smaller(power_of_two_in(row_bytes), 16);
  static constexpr int chunk_cols = elements_in<T>(chunk_bytes);
  static_assert(row_bytes % (Swizzle::span > 0 ? Swizzle::span : 1) == 0, "a row is a whole number of swizzle spans");

  Stored<T> data[rows * (cols / slab_cols) * pitch / (is_packed<T> ? 2 : 1)];

  static TL_DEVICE constexpr unsigned offset(unsigned row, unsigned col) {
    if constexpr (Swizzle::span == 0) return row * pitch + col;
    const unsigned slab = col / slab_cols, col_in_slab = col % slab_cols;
    const unsigned chunk = Swizzle::chunk(row, col_in_slab / chunk_cols);
    return (slab * rows + row) * slab_cols + chunk * chunk_cols + col_in_slab % chunk_cols;
  }

  // A pointer to the element at (row, col). Each aligned chunk of chunk_cols elements is contiguous.
  TL_DEVICE Pointer<T> at(int row, int col) {
    TL_CHECK_INDEX(row, rows);
    TL_CHECK_INDEX(col, cols);
    return InMemory<T>::at(data, offset(row, col));
  }
  TL_DEVICE Pointer<const T> at(int row, int col) const {
    TL_CHECK_INDEX(row, rows);
    TL_CHECK_INDEX(col, cols);
    return InMemory<const T>::at(data, offset(row, col));
  }

  TL_DEVICE Reference<T> operator()(int row, int col) { return InMemory<T>::element(at(row, col)); }
  TL_DEVICE Reference<const T> operator()(int row, int col) const { return *at(row, col); }
  template <int n, class I> TL_DEVICE auto operator()(int row, Ramp<n, I> col) {
    return packet<n>(row, int_index(col.first));
  }
  template <class L, int dim, int n> TL_DEVICE auto operator()(int row, const PacketIndex<L, dim, n>& col) {
    return packet<n>(row, col.ramp().first);
  }
  template <int n, int c> TL_DEVICE Vec<T, n> operator()(int row, const Repeated<n, c>& col) const {
    return repeated<c>(packet<n / c>(row, col.first));
  }
  template <int n> TL_DEVICE SpreadWords<n> operator()(int row, const SpreadBytes<n>& col) const {
    return spread_words<n>(packet<2 * n>(row, col.first));
  }

  // n elements from a multiple of n on, at most one chunk. Of a const tile the result is their values.
  template <int n> static constexpr int width = access_width<T, n>(chunk_bytes);
  template <int n> TL_DEVICE auto packet(int row, int col) {
    static_assert(width<n> == bytes_of<T>(n), "a vector is within one 16-byte chunk of the shared tile");
    return Packet<InShared<T, n, width<n>>>{{at(row, col)}};
  }
  template <int n> TL_DEVICE Vec<T, n> packet(int row, int col) const {
    static_assert(width<n> == bytes_of<T>(n), "a vector is within one 16-byte chunk of the shared tile");
    return load_elements<n, width<n>>(at(row, col));
  }
};

// Whether rows at a distance of `step` store their chunks at the same positions: without a swizzle, or if `step` is a
// multiple of its period, eight rows.
template <class Tile, int step> constexpr bool rows_lie_alike = false;
template <class T, int rows, int cols, class Swizzle, int step>
constexpr bool rows_lie_alike<SharedTile<T, rows, cols, Swizzle>, step> = Swizzle::span == 0 || step % 8 == 0;

// n consecutive elements of a one-dimensional tile from a chunk boundary on, where the swizzle separates the chunks.
template <class Tile, int n> struct InChunks {
  using type = typename Tile::type;
  static constexpr int size = n, each = elements_in<type>(Tile::chunk_bytes);
  static_assert(n % each == 0, "a whole number of chunks");
  Tile* tile;
  int first;
  TL_DEVICE Vec<type, n> load() const {
    Vec<Vec<type, each>, n / each> chunks;
    TL_UNROLL
    for (int i = 0; i < n / each; ++i) chunks.at[i] = value(tile->template packet<each>(first + i * each));
    return bit_cast<Vec<type, n>>(chunks);
  }
  TL_DEVICE void store(const Vec<type, n>& v) const {
    const auto chunks = bit_cast<Vec<Vec<type, each>, n / each>>(v);
    TL_UNROLL
    for (int i = 0; i < n / each; ++i) tile->template packet<each>(first + i * each) = chunks.at[i];
  }
};

// A one-dimensional tile. With a swizzle it is stored as rows as wide as the swizzle's span.
template <class T, int n_, class Swizzle = NoSwizzle> struct alignas(Swizzle::alignment) SharedTile1D {
  using type = T;
  static constexpr int rank = 1, rows = 1, cols = n_;
  static constexpr int chunk_bytes = smaller(power_of_two_in(bytes_of<T>(cols)), 16);
  template <int n> static constexpr int width = access_width<T, n>(chunk_bytes);
  static_assert(Swizzle::span == 0 || bytes_of<T>(cols) % Swizzle::alignment == 0,
                "a multiple of the swizzle's period");
  Stored<T> data[is_packed<T> ? cols / 2 : cols];

  static TL_DEVICE constexpr unsigned offset(unsigned i) {
    if constexpr (Swizzle::span == 0) {
      return i;
    } else {
      constexpr unsigned in_row = elements_in<T>(Swizzle::span), in_chunk = elements_in<T>(chunk_bytes);
      const unsigned row = i / in_row;
      return row * in_row + Swizzle::chunk(row, i % in_row / in_chunk) * in_chunk + i % in_chunk;
    }
  }
  TL_DEVICE Pointer<T> at(int i) {
    TL_CHECK_INDEX(i, cols);
    return InMemory<T>::at(data, offset(i));
  }
  TL_DEVICE Pointer<const T> at(int i) const {
    TL_CHECK_INDEX(i, cols);
    return InMemory<const T>::at(data, offset(i));
  }
  TL_DEVICE Reference<T> operator()(int i) { return InMemory<T>::element(at(i)); }
  TL_DEVICE Reference<const T> operator()(int i) const { return *at(i); }
  template <int n, class I> TL_DEVICE auto operator()(Ramp<n, I> i) { return packet<n>(int_index(i.first)); }
  template <class L, int dim, int n> TL_DEVICE auto operator()(const PacketIndex<L, dim, n>& i) {
    return packet<n>(i.ramp().first);
  }
  template <int n, int c> TL_DEVICE Vec<T, n> operator()(const Repeated<n, c>& i) const {
    return repeated<c>(packet<n / c>(i.first));
  }
  template <int n> TL_DEVICE auto packet(int i) {
    if constexpr (Swizzle::span > 0 && bytes_of<T>(n) > chunk_bytes)
      return Packet<InChunks<SharedTile1D, n>>{{this, i}};
    else
      return Packet<InShared<T, n, width<n>>>{{at(i)}};
  }
  template <int n> TL_DEVICE Vec<T, n> packet(int i) const { return load_elements<n, width<n>>(at(i)); }
};
// A subtile: rows and columns of a shared tile from a first one on. It refers to the elements of the whole tile. Tile
// is the type of the whole tile, const if its elements are.
template <class Tile, int rows_, int cols_> struct SubTile {
  using Whole = std::remove_const_t<Tile>;
  using type = typename Whole::type;
  static constexpr int rank = 2, rows = rows_, cols = cols_, chunk_cols = Whole::chunk_cols;
  static constexpr int chunk_bytes = smaller(power_of_two_in(bytes_of<type>(cols)), Whole::chunk_bytes);
  static_assert(rows > 0 && rows <= Whole::rows && cols > 0 && cols <= Whole::cols, "the part is within the tile");
  Tile* tile;
  int first_row, first_col;

  TL_DEVICE auto at(int row, int col) const { return tile->at(first_row + row, first_col + col); }
  TL_DEVICE decltype(auto) operator()(int row, int col) const { return (*tile)(first_row + row, first_col + col); }
  template <int n, class I> TL_DEVICE auto operator()(int row, Ramp<n, I> col) const {
    return packet<n>(row, int_index(col.first));
  }
  template <class L, int dim, int n> TL_DEVICE auto operator()(int row, const PacketIndex<L, dim, n>& col) const {
    return packet<n>(row, col.ramp().first);
  }
  template <int n, int c> TL_DEVICE Vec<type, n> operator()(int row, const Repeated<n, c>& col) const {
    return repeated<c>(value(packet<n / c>(row, col.first)));
  }
  template <int n> TL_DEVICE auto packet(int row, int col) const {
    return tile->template packet<n>(first_row + row, first_col + col);
  }
};
// The known alignment of the start of a one-dimensional subtile, in bytes; with void that of single elements.
template <class T, class Start> struct StartOfPart {
  static constexpr int alignment = Start::alignment;
};
template <class T> struct StartOfPart<T, void> {
  static constexpr int alignment = bytes_of<T>(fewest_written<T>);
};
template <class Tile, int n_, class Start = void> struct SubTile1D {
  using Whole = std::remove_const_t<Tile>;
  using type = typename Whole::type;
  static constexpr int rank = 1, rows = 1, cols = n_;
  // Elements are accessed one by one unless a larger alignment is known.
  static constexpr int alignment = StartOfPart<type, Start>::alignment;
  static constexpr int chunk_bytes =
      smaller(alignment, smaller(power_of_two_in(bytes_of<type>(cols)), Whole::chunk_bytes));
  static_assert(cols > 0 && cols <= Whole::cols, "the part is within the tile");
  Tile* tile;
  int first;
  TL_DEVICE auto at(int i) const { return tile->at(first + i); }
  TL_DEVICE decltype(auto) operator()(int i) const { return (*tile)(first + i); }
  template <int n> TL_DEVICE auto packet(int i) const { return tile->template packet<n>(first + i); }
};

// Rows first .. first + n - 1 of a tile (elements of a one-dimensional tile). Copies, loops, reductions and tl::gemm
// accept the subtile as they accept a whole tile. `first` is any row with first + n <= rows. The result is const, so
// that it can be passed as a destination tile.
template <int n, class Tile>
TL_DEVICE auto rows(Tile& tile, int first)
    -> std::enable_if_t<std::remove_const_t<Tile>::rank == 2, const SubTile<Tile, n, std::remove_const_t<Tile>::cols>> {
  TL_CHECK_INDEX(first, std::remove_const_t<Tile>::rows - n + 1);
  return {&tile, first, 0};
}
template <int n, class Tile>
TL_DEVICE auto rows(Tile& tile, int first)
    -> std::enable_if_t<std::remove_const_t<Tile>::rank == 1, const SubTile1D<Tile, n>> {
  TL_CHECK_INDEX(first, std::remove_const_t<Tile>::cols - n + 1);
  return {&tile, first};
}
// The same for a one-dimensional tile, if `first` is a multiple of Start::alignment bytes (tl::Aligned).
template <int n, class Start, class Tile>
TL_DEVICE auto rows(Tile& tile, int first)
    -> std::enable_if_t<std::remove_const_t<Tile>::rank == 1, const SubTile1D<Tile, n, Start>> {
  TL_CHECK_INDEX(first, std::remove_const_t<Tile>::cols - n + 1);
  return {&tile, first};
}
// Columns first .. first + n - 1. For accesses wider than one element, such as those of copies and tl::gemm, `first` is
// a multiple of 16 bytes and of the largest power of two that divides n elements.
template <int n, class Tile>
TL_DEVICE auto cols(Tile& tile, int first) -> const SubTile<Tile, std::remove_const_t<Tile>::rows, n> {
  TL_CHECK_INDEX(first, std::remove_const_t<Tile>::cols - n + 1);
  return {&tile, 0, first};
}

// Subtiles of subtiles refer to the whole tile.
template <int n, class Tile, int m, int k>
TL_DEVICE const SubTile<Tile, n, k> rows(const SubTile<Tile, m, k>& part, int first) {
  static_assert(n <= m, "the part is within the tile");
  TL_CHECK_INDEX(first, m - n + 1);
  return {part.tile, part.first_row + first, part.first_col};
}
template <int n, class Tile, int m> TL_DEVICE const SubTile1D<Tile, n> rows(const SubTile1D<Tile, m>& part, int first) {
  static_assert(n <= m, "the part is within the tile");
  TL_CHECK_INDEX(first, m - n + 1);
  return {part.tile, part.first + first};
}
template <int n, class Tile, int m, int k>
TL_DEVICE const SubTile<Tile, m, n> cols(const SubTile<Tile, m, k>& part, int first) {
  static_assert(n <= k, "the part is within the tile");
  TL_CHECK_INDEX(first, k - n + 1);
  return {part.tile, part.first_row, part.first_col + first};
}

// An operand that is read transposed; no data is moved.
template <class Tile> struct Transposed {
  const Tile& tile;
};
template <class Tile> TL_DEVICE Transposed<Tile> transposed(const Tile& tile) { return {tile}; }

// The kernel's shared memory as its struct. Any thread.
template <class Shared> TL_DEVICE Shared& shared() {
  static_assert(alignof(Shared) <= 1024, "shared memory is aligned to 1024 bytes");
  return *static_cast<Shared*>(shared_memory());
}

}  // namespace tl
