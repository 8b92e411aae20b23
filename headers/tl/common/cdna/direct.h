// Copies of tiles from global to shared memory without registers: 16 bytes per lane, on targets with such loads
// (gfx950).
#pragma once
#include "../copy_async.h"
#include "staged.h"

namespace tl {

// The element at which the n-th 16-byte chunk of a tile's storage begins: the inverse of SharedTile::offset.
template <class Tile> struct StoredChunk;
template <class T, int rows, int cols, class Swizzle> struct StoredChunk<SharedTile<T, rows, cols, Swizzle>> {
  using Tile = SharedTile<T, rows, cols, Swizzle>;
  static constexpr int in_row = Tile::slab_cols / Tile::chunk_cols, count = rows * cols / Tile::chunk_cols;
  static constexpr bool in_order = Swizzle::padding == 0 && Tile::chunk_bytes == 16;
  static TL_DEVICE int row(unsigned n) { return n / in_row % rows; }
  static TL_DEVICE int col(unsigned n) {  // a swizzle is its own inverse
    return n / in_row / rows * Tile::slab_cols + Swizzle::chunk(row(n), n % in_row) * Tile::chunk_cols;
  }
};
template <class T, int n_> struct StoredChunk<SharedTile1D<T, n_>> {
  static constexpr int chunk_cols = 16 / int(sizeof(T)), count = n_ / chunk_cols;
  static constexpr bool in_order = SharedTile1D<T, n_>::chunk_bytes == 16;
  static TL_DEVICE int row(unsigned) { return 0; }
  static TL_DEVICE int col(unsigned n) { return n * chunk_cols; }
};

// tl::copy_async by LDS loads. The lanes of a wave write consecutive 16-byte chunks of shared memory, so the swizzle
// permutes their global addresses. Applies to tiles of whole waves whose chunks are entirely inside or outside the
// tensor and whose extent fits a buffer. Otherwise returns false, and the caller copies synchronously; if that is
// decided at run time, all outstanding loads are waited for first, so that the counts of wait_for_direct_loads stay
// valid.
template <int threads, class Tile> struct DirectTile {
  using Chunks = StoredChunk<Tile>;
  static constexpr bool possible = has_loads_to_shared && Chunks::in_order && Chunks::count % warp_size == 0;
  template <class View> static TL_DEVICE bool started(const Place<View>& from, Tile& to) {
    if constexpr (possible && View::alignment == 0) {
      return from.aligned(16) ? started(from.template with_row_start<16>(), to) : none_in_flight();
    } else if constexpr (!possible || !has_whole_pieces<View, 16>) {
      return false;
    } else {
      if (!StagedBuffer<View>::reaches(from, Tile::rows, Tile::cols)) return none_in_flight();
      const StagedBuffer<View> buffer(from, View::rank == 1 ? Tile::cols : Tile::rows);
      auto* const of_wave = reinterpret_cast<StagedBits<16>*>(to.data) + warp() * warp_size;
      TL_UNROLL
      for (int first = 0; first < Chunks::count; first += threads) {
        const int n = first + thread();
        if (first + threads <= Chunks::count || first + warp() * warp_size < Chunks::count)
          load_to_shared(of_wave, first, buffer.start(), buffer.bytes, buffer.offset(Chunks::row(n), Chunks::col(n)));
      }
      return true;
    }
  }
  static TL_DEVICE bool none_in_flight() {
    wait_vector_memory<0>();
    return false;
  }
};
template <int threads, class View, class T, int rows, int cols, class Swizzle>
struct DirectCopy<threads, View, SharedTile<T, rows, cols, Swizzle>>
    : DirectTile<threads, SharedTile<T, rows, cols, Swizzle>> {};
template <int threads, class View, class T, int n>
struct DirectCopy<threads, View, SharedTile1D<T, n>> : DirectTile<threads, SharedTile1D<T, n>> {};

// For a pipeline of LDS loads: waits until only the loads of the latest `tiles` tiles are outstanding. Each thread has
// issued at least `loads` of them per tile; loads complete in order.
template <int tiles, int loads> TL_DEVICE void wait_for_direct_loads() { wait_vector_memory<tiles * loads>(); }
// The same in iteration k of a loop with `trips` iterations: the last `tiles` iterations wait for all loads.
template <int tiles, int loads> TL_DEVICE void wait_for_direct_loads(int k, int trips) {
  if (k + tiles < trips)
    wait_for_direct_loads<tiles, loads>();
  else
    wait_for_direct_loads<0, loads>();
}

}  // namespace tl
