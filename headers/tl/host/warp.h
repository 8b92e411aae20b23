// Warp collectives. Who: every lane of the warp, at the same call; none of them orders memory.
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

template <class T> TL_DEVICE T shuffle_xor(T value, int mask) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_XOR, mask, warp_size, host::all_lanes);
}
template <class T> TL_DEVICE T shuffle(T value, int lane) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_INDEX, lane, warp_size, host::all_lanes);
}
// The value of the lane `delta` below (up) or above (down); lanes at the edge keep their own.
template <class T> TL_DEVICE T shuffle_up(T value, int delta) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_UP, delta, warp_size, host::all_lanes);
}
template <class T> TL_DEVICE T shuffle_down(T value, int delta) {
  return host::shuffle(value, TL_ENGINE_SHUFFLE_DOWN, delta, warp_size, host::all_lanes);
}
// Bit l is set when lane l's predicate holds.
TL_DEVICE uint64_t ballot(bool predicate) { return tl_engine_ballot(host::all_lanes, predicate); }

// Rows of 8 16-bit elements from shared memory: lane l gives the address of row l % 8 of matrix l / 8, and receives
// elements (l / 4, 2 * (l % 4) ..+1) of each matrix; `trans` of each matrix's transpose.  [PTX ISA, ldmatrix]
TL_DEVICE void ldmatrix_x4(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 4, 0); }
TL_DEVICE void ldmatrix_x4_trans(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 4, 1); }
TL_DEVICE void ldmatrix_x2(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 2, 0); }
TL_DEVICE void ldmatrix_x2_trans(uint32_t* r, const void* row) { tl_engine_ldmatrix(r, row, 2, 1); }

}  // namespace tl
