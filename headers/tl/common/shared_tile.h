// Tiles in shared memory. The swizzle is in the type, so every access finds its element by itself.
#pragma once
#include "index.h"
#include "shape.h"
#include "swizzle.h"

namespace tl {

// A row-major rows x cols tile. With a swizzle narrower than a row it is stored panel after panel.
template <class T, int rows_, int cols_, class Swizzle = NoSwizzle> struct alignas(Swizzle::alignment) SharedTile {
  using type = T;
  static constexpr int rank = 2, rows = rows_, cols = cols_;
  static constexpr int row_bytes = cols * static_cast<int>(sizeof(T));
  static constexpr int panel_cols = Swizzle::span > 0 ? Swizzle::span / static_cast<int>(sizeof(T)) : cols;
  static constexpr int pitch = panel_cols + Swizzle::padding / static_cast<int>(sizeof(T));  // elements
  // A row is made of pieces of this many bytes, each in one piece and aligned.
  static constexpr int chunk_bytes = smaller(power_of_two_in(row_bytes), 16);
  static constexpr int chunk_cols = chunk_bytes / static_cast<int>(sizeof(T));
  static_assert(row_bytes % (Swizzle::span > 0 ? Swizzle::span : 1) == 0, "a row is a whole number of swizzle spans");

  T data[rows * (cols / panel_cols) * pitch];

  static TL_DEVICE constexpr unsigned offset(unsigned row, unsigned col) {
    if constexpr (Swizzle::span == 0) return row * pitch + col;
    const unsigned panel = col / panel_cols, col_in_panel = col % panel_cols;
    const unsigned chunk = Swizzle::chunk(row, col_in_panel / chunk_cols);
    return (panel * rows + row) * panel_cols + chunk * chunk_cols + col_in_panel % chunk_cols;
  }

  // The element at (row, col); chunks of chunk_cols elements that start at a multiple of it lie in one piece.
  TL_DEVICE T* at(int row, int col) { return data + offset(row, col); }
  TL_DEVICE const T* at(int row, int col) const { return data + offset(row, col); }

  TL_DEVICE T& operator()(int row, int col) { return *at(row, col); }
  TL_DEVICE const T& operator()(int row, int col) const { return *at(row, col); }
  template <int n> TL_DEVICE auto operator()(int row, const Ramp<n>& col) { return packet<n>(row, col.first); }
  template <class L, int dim, int n> TL_DEVICE auto operator()(int row, const PacketIndex<L, dim, n>& col) {
    return packet<n>(row, col.ramp().first);
  }

  // n elements that start at a multiple of n, n being at most a chunk. Of a constant tile they are the values.
  template <int n> static constexpr int width = access_width<T, n>(chunk_bytes);
  template <int n> TL_DEVICE auto packet(int row, int col) {
    static_assert(width<n> == n * int(sizeof(T)), "a packet lies within a 16-byte chunk of the shared tile");
    return Packet<InShared<T, n, width<n>>>{{at(row, col)}};
  }
  template <int n> TL_DEVICE Vec<T, n> packet(int row, int col) const {
    static_assert(width<n> == n * int(sizeof(T)), "a packet lies within a 16-byte chunk of the shared tile");
    return load_elements<n, width<n>>(at(row, col));
  }
};

template <class T, int n_> struct alignas(16) SharedTile1D {
  using type = T;
  static constexpr int rank = 1, rows = 1, cols = n_;
  static constexpr int chunk_bytes = smaller(power_of_two_in(cols * static_cast<int>(sizeof(T))), 16);
  template <int n> static constexpr int width = access_width<T, n>(chunk_bytes);
  T data[cols];

  TL_DEVICE T* at(int i) { return data + i; }
  TL_DEVICE const T* at(int i) const { return data + i; }
  TL_DEVICE T& operator()(int i) { return data[i]; }
  TL_DEVICE const T& operator()(int i) const { return data[i]; }
  template <int n> TL_DEVICE auto operator()(const Ramp<n>& i) { return packet<n>(i.first); }
  template <class L, int dim, int n> TL_DEVICE auto operator()(const PacketIndex<L, dim, n>& i) {
    return packet<n>(i.ramp().first);
  }
  template <int n> TL_DEVICE auto packet(int i) { return Packet<InShared<T, n, width<n>>>{{at(i)}}; }
  template <int n> TL_DEVICE Vec<T, n> packet(int i) const { return load_elements<n, width<n>>(at(i)); }
};

// An operand that is used transposed: no data moves.
template <class Tile> struct Transposed {
  const Tile& tile;
};
template <class Tile> TL_DEVICE Transposed<Tile> transposed(const Tile& tile) { return {tile}; }

// The kernel's shared memory, as its struct. Any thread.
template <class Shared> TL_DEVICE Shared& shared() {
  static_assert(alignof(Shared) <= 1024, "shared memory starts at a multiple of 1024 bytes");
  return *static_cast<Shared*>(shared_memory());
}

}  // namespace tl
