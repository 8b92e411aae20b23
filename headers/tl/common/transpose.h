// Transposing copies between shared tiles.
#pragma once
#include "copy.h"

namespace tl {

// to(j, i) = from(i, j), converted; the tiles are disjoint. Neighbouring threads read neighbouring columns of a row and
// write chunks of neighbouring rows. Called by: `threads` threads of the block, from thread 0 on. Contains no barrier:
// tl::sync_threads precedes it, and follows it before other threads read `to`.
template <int threads, class From, class To>
TL_DEVICE std::enable_if_t<is_shared_tile<From> && is_shared_tile<To>> transpose(const From& from, To& to) {
  static_assert(From::rank == 2 && To::rank == 2, "two-dimensional tiles");
  static_assert(From::rows == To::cols && From::cols == To::rows, "`to` has the transposed shape");
  using T = typename To::type;
  constexpr int vector = To::chunk_bytes / static_cast<int>(sizeof(T));
  constexpr int count = From::cols * (From::rows / vector);
  TL_UNROLL_LITTLE
  for (int piece = thread(); piece < count; piece += threads) {
    const int col = piece % From::cols, row = piece / From::cols * vector;
    Vec<T, vector> v;
    TL_UNROLL
    for (int e = 0; e < vector; ++e) v.at[e] = convert<T>(from(row + e, col));
    to.template packet<vector>(col, row) = v;
  }
}

}  // namespace tl
