// Exchange between two warpgroups through shared memory, in a ping-pong loop in which they alternate iterations.
#pragma once
#include "../debug.h"
#include "../reduce.h"
#include "../slice.h"
#include "tma_copy.h"
#include "tma_pipeline.h"

namespace tl {

// The warpgroup of this thread; the shuffle makes it warp-uniform for the compiler. Called by: whole warps.
TL_DEVICE int warpgroup() { return shuffle(warp(), 0) / warpgroup_warps; }

// Prints a tile of an iteration, one line per element: a fragment that the calling warpgroup holds as a whole, or a
// shared tile, from one of its threads. Called by: every thread of one warpgroup.
template <class Tile> TL_DEVICE void print_own(const char* name, const Tile& tile) {
  if constexpr (is_shared_tile<Tile>)
    print(name, tile, warpgroup() * warpgroup_warps * warp_size);
  else
    print(name, tile, warpgroup());  // a fragment's replicas are in the order of the warpgroups
}

// Events of an iteration: its MMAs have been issued; the fragment for the other warpgroup is in shared memory.
enum IterationEvent { mma_started, fragment_stored };

// The named barrier of an event of iteration k; headers/tl and kernels synchronise by barriers 0 and 1.
TL_DEVICE int event_barrier(IterationEvent event, int k) { return 2 + 2 * event + k % 2; }

// Arrives at the named barrier of an event of iteration k, which is this warpgroup's, and does not wait. The other
// warpgroup sees what this thread wrote to shared memory once it has synchronised with the event. Called by: every
// thread of the warpgroup.
template <int threads> TL_DEVICE void named_barrier_arrive(IterationEvent event, int k) {
  barrier_arrive(event_barrier(event, k), threads);
}
// Waits at the named barrier until the other warpgroup has arrived for its iteration k. Called by: every thread of the
// warpgroup.
template <int threads> TL_DEVICE void named_barrier_sync(IterationEvent event, int k) {
  barrier_sync(event_barrier(event, k), threads);
}

// Stores a fragment to shared memory for the other warpgroup. The calling warpgroup holds the whole tile; fragments of
// rank 2 have 16-bit elements. Called by: every thread of the warpgroup.
template <class T, class Layout, class Tile> TL_DEVICE void store_fragment(const Fragment<T, Layout>& from, Tile& to) {
  sync_warp();  // all lanes have read what they loaded in the iteration before
  if constexpr (Layout::rank == 2) {
    static_assert(Layout::own_rows == Layout::M && Layout::own_cols == Layout::N, "a warpgroup holds the whole tile");
    TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) stage_rows<0, Layout::N, 0>(from, to, m);
  } else {
    TL_UNROLL
    for (int r = 0; r < Layout::registers; ++r)
      if (lane() % 4 == 0) to(Layout::row(r)) = from.reg[r];
  }
}

// Loads what the other warpgroup stored: each element returns to the lane and register that it had there. Called by: as
// above.
template <class Tile, class T, class Layout> TL_DEVICE void load_fragment(const Tile& from, Fragment<T, Layout>& to) {
  if constexpr (Layout::rank == 2) {
    static_assert(sizeof(T) == 2 && Layout::N % 16 == 0, "ldmatrix.x4 loads four 8x8 matrices of 16-bit elements");
    TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) TL_UNROLL
    for (int col = 0; col < Layout::N; col += 16) {
      uint32_t pairs[4];
      ldmatrix_x4(pairs, from.at(Layout::warp_row(m) + lane() % 16, col + lane() / 16 * 8));
      TL_UNROLL
      for (int i = 0; i < 4; ++i)
        InRegisters<T, 2>{&to.reg[m * Layout::tile_registers + col / 2 + i * 2]}.store(bit_cast<Vec<T, 2>>(pairs[i]));
    }
  } else {
    TL_UNROLL
    for (int r = 0; r < Layout::registers; ++r) to.reg[r] = from(Layout::row(r));
  }
}

// Adds the partial row sums that tl::thread_reduce_sum left in the threads of two warpgroups: all threads get the
// total. `exchange` is a shared tile with one element per row. Both barriers order RAW of `exchange`: warpgroup 1's
// warps overwrite the rows that they themselves have read. Called by: every thread of both.
template <int threads, class T, class Layout, class Exchange>
TL_DEVICE void allreduce_sum(Fragment<T, Layout>& partials, Exchange& exchange) {
  using Tile = WgmmaAccumulator<Layout::extent, 8>;  // any tile whose rows one warpgroup holds
  static_assert(std::is_same<Layout, Slice<1, Tile>>::value, "each warpgroup holds one value per row");
  warp_allreduce_sum<Tile, 1>(partials);
  const bool is_first = warpgroup() == 0;
  if (is_first) store_fragment(partials, exchange);
  sync_readers<threads>();
  if (!is_first) {
    TL_UNROLL
    for (int r = 0; r < Layout::registers; ++r) partials.reg[r] += exchange(Layout::row(r));
    store_fragment(partials, exchange);
  }
  sync_readers<threads>();
  if (is_first) load_fragment(exchange, partials);
}

}  // namespace tl
