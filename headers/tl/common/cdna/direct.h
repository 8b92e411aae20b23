// Tiles that go from global to shared memory past the registers: 16 bytes a lane, on machines that have such loads.
#pragma once
#include "../copy_async.h"
#include "staged.h"

namespace tl {

// Which element the n-th 16 bytes of a tile's storage begin with: what SharedTile::offset says, read backwards.
template <class Tile> struct StoredChunk;
template <class T, int rows, int cols, class Swizzle> struct StoredChunk<SharedTile<T, rows, cols, Swizzle>> {
  using Tile = SharedTile<T, rows, cols, Swizzle>;
  static constexpr int in_row = Tile::slab_cols / Tile::chunk_cols, count = rows * cols / Tile::chunk_cols;
  static constexpr bool in_order = Swizzle::padding == 0 && Tile::chunk_bytes == 16;
  static TL_DEVICE int row(unsigned n) { return n / in_row % rows; }
  static TL_DEVICE int col(unsigned n) {  // a swizzle undoes itself
    return n / in_row / rows * Tile::slab_cols + Swizzle::chunk(row(n), n % in_row) * Tile::chunk_cols;
  }
};
template <class T, int n_> struct StoredChunk<SharedTile1D<T, n_>> {
  static constexpr int chunk_cols = 16 / int(sizeof(T)), count = n_ / chunk_cols;
  static constexpr bool in_order = SharedTile1D<T, n_>::chunk_bytes == 16;
  static TL_DEVICE int row(unsigned) { return 0; }
  static TL_DEVICE int col(unsigned n) { return n * chunk_cols; }
};

// tl::copy_async: a wave's lanes fill neighbouring 16 bytes of shared memory, so that the swizzle decides what each
// lane asks for. Only of pieces that lie inside or outside as a whole, and of tiles that a buffer fits; the other ways
// are done when they return, and so are then the loads started before: the count of those in flight stays right. A tile
// of whole waves.
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

// Of a pipeline of loads past the registers: waits until only those of the latest `tiles` tiles are outstanding, each
// thread having started `loads` for each at least. The others come back first.
template <int tiles, int loads> TL_DEVICE void wait_for_direct_loads() { wait_vector_memory<tiles * loads>(); }
// The same in iteration k of a loop of `trips`, of which the last have no tiles behind theirs.
template <int tiles, int loads> TL_DEVICE void wait_for_direct_loads(int k, int trips) {
  if (k + tiles < trips)
    wait_for_direct_loads<tiles, loads>();
  else
    wait_for_direct_loads<0, loads>();
}

}  // namespace tl
