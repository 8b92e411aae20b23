// What two warpgroups hand to each other through shared memory, where each takes every other turn of a loop.
#pragma once
#include "../reduce.h"
#include "../rows_of.h"
#include "tma_copy.h"
#include "tma_pipeline.h"

namespace tl {

// Which warpgroup this thread belongs to; to the compiler it is the same in a whole warp. Who: whole warps.
TL_DEVICE int warpgroup() { return shuffle(warp(), 0) / warpgroup_warps; }

// Of a turn: its products have been started; what it hands over lies in shared memory.
enum TurnEvent { turn_started, turn_handed_over };

// Tells the other warpgroup of turn k, which is this one's, and does not wait. What this thread wrote to shared memory
// is visible to those who await it. Who: every thread of the warpgroup.
template <int threads> TL_DEVICE void announce(TurnEvent event, int k) {
  barrier_arrive(2 + 2 * event + k % 2, threads);
}
// Waits until the other warpgroup has announced its turn k. Who: every thread of the warpgroup.
template <int threads> TL_DEVICE void await(TurnEvent event, int k) { barrier_sync(2 + 2 * event + k % 2, threads); }

// Stores a fragment that the calling warpgroup holds whole; the other one's, of the same layout, is another. Of a tile
// these are elements of 16 bits. Who: every thread of the warpgroup.
template <class T, class Layout, class Tile> TL_DEVICE void hand_over(const Fragment<T, Layout>& from, Tile& to) {
  sync_warp();  // all lanes have read what was handed to them in the turn before
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

// Loads it: each element comes to the register and lane that it had in the other warpgroup. Who: the same.
template <class Tile, class T, class Layout> TL_DEVICE void take_over(const Tile& from, Fragment<T, Layout>& to) {
  if constexpr (Layout::rank == 2) {
    static_assert(sizeof(T) == 2 && Layout::N % 16 == 0, "four 8x8 matrices of 16 bits at a time");
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

// Sums of rows of which each thread of two warpgroups has a part, by tl::reduce_sum_own: all get the whole. `between`
// takes the parts from one to the other. Who: every thread of both.
template <int threads, class T, class Layout, class Between>
TL_DEVICE void add_up(Fragment<T, Layout>& sums, Between& between) {
  using Tile = WgmmaAccumulator<Layout::extent, 8>;  // as any tile whose rows a warpgroup holds
  static_assert(std::is_same<Layout, RowsOf<Tile>>::value, "each warpgroup has a value of each row");
  sum_lanes<Tile, 1>(sums);
  const bool is_first = warpgroup() == 0;
  if (is_first) hand_over(sums, between);
  sync_readers<threads>();
  if (!is_first) {
    TL_UNROLL
    for (int r = 0; r < Layout::registers; ++r) sums.reg[r] += between(Layout::row(r));
    hand_over(sums, between);
  }
  sync_readers<threads>();
  if (is_first) take_over(between, sums);
}

}  // namespace tl
