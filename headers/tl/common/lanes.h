// Warp-level votes and reductions of scalars. Called by: every lane of the warp, at the same call.
#pragma once
#include "reduce.h"

namespace tl {

// 1 if the predicate is true in any, or in every, participating lane of the warp (by default all lanes), else 0.
template <class... Lanes> TL_DEVICE int any_of_warp(bool predicate, Lanes... lanes) {
  return ballot(predicate, lanes...) != 0;
}
template <class... Lanes> TL_DEVICE int all_of_warp(bool predicate, Lanes... lanes) {
  return ballot(!predicate, lanes...) == 0;
}

// The position of the n-th set bit, counted from `first` upwards, or downwards for negative n; for n = 0, `first` if
// that bit is set. ~0 if there is none. Any thread. [CUDA C++ Programming Guide, "Integer Intrinsics", __fns]
TL_DEVICE uint32_t nth_set(uint32_t bits, uint32_t first, int n) {
  const int step = n < 0 ? -1 : 1;
  int left = n == 0 ? 1 : n * step;
  for (int at = static_cast<int>(first); at >= 0 && at < 32; at += step) {
    if ((bits >> at & 1) != 0 && --left == 0) return static_cast<uint32_t>(at);
    if (n == 0) break;
  }
  return ~0u;
}

// Butterfly all-reduce over groups of `lanes` neighbouring lanes; `lanes` is a power of two.
template <class Op, int lanes, class T> TL_DEVICE T of_lanes(T x) {
  static_assert(lanes > 0 && lanes <= warp_size && (lanes & (lanes - 1)) == 0,
                "the number of lanes is a power of two, at most the warp size");
  TL_UNROLL
  for (int distance = lanes / 2; distance > 0; distance /= 2) x = Op::combine(x, shuffle_xor(x, distance));
  return x;
}
template <int lanes = warp_size, class T> TL_DEVICE T warp_sum(T x) { return of_lanes<ReduceSum, lanes>(x); }
template <int lanes = warp_size, class T> TL_DEVICE T warp_max(T x) { return of_lanes<ReduceMax, lanes>(x); }
template <int lanes = warp_size, class T> TL_DEVICE T warp_min(T x) { return of_lanes<ReduceMin, lanes>(x); }
template <int lanes = warp_size, class T> TL_DEVICE T warp_bitand(T x) { return of_lanes<ReduceBitAnd, lanes>(x); }
template <int lanes = warp_size, class T> TL_DEVICE T warp_bitor(T x) { return of_lanes<ReduceBitOr, lanes>(x); }

}  // namespace tl
