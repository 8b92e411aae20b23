// Votes: whether any, or all, elements of a tile are nonzero.
#pragma once
#include "reduce.h"

namespace tl {

// Whether any, or all, elements of a shared tile are nonzero: each warp reads the whole tile and votes. Called by:
// whole warps, any number of them. Reads shared memory without a barrier.
template <class Tile> TL_DEVICE std::enable_if_t<is_shared_tile<Tile>, bool> any_of(const Tile& tile) {
  bool found = false;
  TL_UNROLL_LITTLE
  for (int i = lane(); i < Tile::rows * Tile::cols; i += warp_size) {
    if constexpr (Tile::rank == 1)
      found = found || tile(i) != typename Tile::type(0);
    else
      found = found || tile(i / Tile::cols, i % Tile::cols) != typename Tile::type(0);
  }
  return ballot(found) != 0;
}
template <class Tile> TL_DEVICE std::enable_if_t<is_shared_tile<Tile>, bool> all_of(const Tile& tile) {
  bool missing = false;
  TL_UNROLL_LITTLE
  for (int i = lane(); i < Tile::rows * Tile::cols; i += warp_size) {
    if constexpr (Tile::rank == 1)
      missing = missing || tile(i) == typename Tile::type(0);
    else
      missing = missing || tile(i / Tile::cols, i % Tile::cols) == typename Tile::type(0);
  }
  return ballot(missing) == 0;
}
// Whether any element that the warp holds differs between two fragments of one layout, or is infinite in `a`. Called
// by: whole warps.
template <class T, class Layout>
TL_DEVICE bool any_changed(const Fragment<T, Layout>& a, const Fragment<T, Layout>& b) {
  bool found = false;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) found = found || a.reg[r] != b.reg[r] || abs(a.reg[r]) == infinity<T>;
  return ballot(found) != 0;
}
// Votes of a block without a barrier that reduces: in how many threads the predicate is true, or whether it is in any,
// or in all. The warps exchange the counts of their ballots through `votes`, an int of shared memory per warp of the
// block; a block of one warp, a wave on AMD, needs none and passes one_wave. Each is a barrier, too. Called by: every
// thread of the block.
enum OneWave { one_wave };
template <int warps> TL_DEVICE int count_of_block(bool predicate, int (&votes)[warps]) {
  const int in_warp = static_cast<int>(popcount(ballot(predicate)));
  sync_threads();  // all reads of an earlier vote are complete
  if (lane() == 0) votes[warp()] = in_warp;
  sync_threads();  // all votes are visible
  int count = 0;
  TL_UNROLL
  for (int w = 0; w < warps; ++w) count += votes[w];
  return count;
}
TL_DEVICE int count_of_block(bool predicate, OneWave) {
  sync_threads();
  return static_cast<int>(popcount(ballot(predicate)));
}
template <class Votes> TL_DEVICE int any_of_block(bool predicate, Votes&& votes) {
  return count_of_block(predicate, votes) != 0;
}
template <class Votes> TL_DEVICE int all_of_block(bool predicate, Votes&& votes) {
  return count_of_block(!predicate, votes) == 0;
}
// Whether any, or all, elements of a fragment are nonzero; `votes` has an int of shared memory per warp of the block.
template <class T, class Layout, int warps>
TL_DEVICE bool any_of(const Fragment<T, Layout>& fragment, int (&votes)[warps]) {
  bool found = false;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) found = found || (Layout::valid(r) && fragment.reg[r] != T(0));
  return any_of_block(found, votes) != 0;
}
template <class T, class Layout, int warps>
TL_DEVICE bool all_of(const Fragment<T, Layout>& fragment, int (&votes)[warps]) {
  bool missing = false;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) missing = missing || (Layout::valid(r) && fragment.reg[r] == T(0));
  return any_of_block(missing, votes) == 0;
}

}  // namespace tl
