// Warp collectives. Called by: every lane in the mask `lanes`, by default all of the warp, at the same call. They do
// not order memory.
#pragma once
#include <type_traits>
#include "engine.h"
#include "kernel.h"

namespace tl {
namespace host {
template <class T> TL_DEVICE T shuffle(T value, int mode, int operand, int width, uint64_t mask) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 16, "a shuffled value has up to 16 bytes");
  tl_engine_shuffle(&value, sizeof value, mode, operand, width, mask);
  return value;
}
constexpr uint64_t all_lanes = ~uint64_t(0);
}  // namespace host

// The value of another lane: lane() ^ mask, a given lane, the lane `delta` below (up) or above (down). Lanes are
// exchanged within groups of `width`, a power of two; past the edge a lane receives its own value.
template <int width = warp_size, class T> TL_DEVICE T shuffle_xor(T value, int mask, uint64_t lanes = host::all_lanes) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_XOR, mask, width, lanes);
}
template <int width = warp_size, class T> TL_DEVICE T shuffle(T value, int lane, uint64_t lanes = host::all_lanes) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_INDEX, lane, width, lanes);
}
template <int width = warp_size, class T> TL_DEVICE T shuffle_up(T value, int delta, uint64_t lanes = host::all_lanes) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_UP, delta, width, lanes);
}
template <int width = warp_size, class T>
TL_DEVICE T shuffle_down(T value, int delta, uint64_t lanes = host::all_lanes) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_DOWN, delta, width, lanes);
}
// Bit l is set if lane l's predicate is true.
TL_DEVICE uint64_t ballot(bool predicate, uint64_t lanes = host::all_lanes) {
  return tl_engine_ballot(lanes, predicate);
}
// match_any: the lanes with the same value as this one. match_all: all lanes if they have the same value, else 0.
template <class T> TL_DEVICE uint64_t match_any(T value, uint64_t lanes = host::all_lanes) {
  uint64_t same = 0;
  for (int l = 0; l < warp_size; ++l)
    if (lanes >> l & 1) same |= uint64_t(shuffle(value, l, lanes) == value) << l;
  return same;
}
template <class T> TL_DEVICE uint64_t match_all(T value, uint64_t lanes = host::all_lanes) {
  return ballot(shuffle(value, __builtin_ctzll(lanes), lanes) != value, lanes) == 0 ? ballot(true, lanes) : 0;
}

// Loads 8x8 matrices of 16-bit elements: lane l passes the address of row l % 8 of matrix l / 8, and receives elements
// 2 * (l % 4) and the next of row l / 4 of each matrix, or of its transpose (`trans`). [PTX ISA, ldmatrix]
TL_DEVICE void ldmatrix_x4(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 4, 0); }
TL_DEVICE void ldmatrix_x4_trans(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 4, 1); }
TL_DEVICE void ldmatrix_x2(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 2, 0); }
TL_DEVICE void ldmatrix_x2_trans(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 2, 1); }

// first_set: the 1-based position of the lowest set bit, 0 if there is none. popcount: the number of set bits.
TL_DEVICE int first_set(uint32_t bits) { return __builtin_ffs(static_cast<int>(bits)); }
TL_DEVICE int first_set(uint64_t bits) { return __builtin_ffsll(static_cast<long long>(bits)); }
TL_DEVICE uint32_t popcount(uint32_t bits) { return static_cast<uint32_t>(__builtin_popcount(bits)); }
TL_DEVICE uint64_t popcount(uint64_t bits) { return static_cast<uint64_t>(__builtin_popcountll(bits)); }

}  // namespace tl

// CUDA's warp intrinsics, for inline user code.
// [CUDA C++ Programming Guide, Warp Vote, Match and Shuffle Functions]
inline unsigned __ballot_sync(unsigned lanes, int predicate) { return unsigned(tl::ballot(predicate != 0, lanes)); }
inline int __any_sync(unsigned lanes, int predicate) { return __ballot_sync(lanes, predicate) != 0; }
inline int __all_sync(unsigned lanes, int predicate) { return __ballot_sync(lanes, !predicate) == 0; }
template <class T> unsigned __match_any_sync(unsigned lanes, T value) { return unsigned(tl::match_any(value, lanes)); }
template <class T> T __shfl_sync(unsigned lanes, T value, int lane, int width = 32) {
  return tl::host::shuffle(value, TL_ENGINE_SHUFFLE_INDEX, lane, width, lanes);
}
template <class T> T __shfl_xor_sync(unsigned lanes, T value, int mask, int width = 32) {
  return tl::host::shuffle(value, TL_ENGINE_SHUFFLE_XOR, mask, width, lanes);
}
template <class T> T __shfl_up_sync(unsigned lanes, T value, unsigned delta, int width = 32) {
  return tl::host::shuffle(value, TL_ENGINE_SHUFFLE_UP, int(delta), width, lanes);
}
template <class T> T __shfl_down_sync(unsigned lanes, T value, unsigned delta, int width = 32) {
  return tl::host::shuffle(value, TL_ENGINE_SHUFFLE_DOWN, int(delta), width, lanes);
}
