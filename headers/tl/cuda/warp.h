// Warp collectives. Called by: every lane in the mask `lanes`, by default all of the warp, at the same call. They do
// not order memory.
#pragma once
#include "../standard.h"
#include "memory.h"
#include "numeric.h"

namespace tl {

// The value of another lane: lane() ^ mask, a given lane, the lane `delta` below (up) or above (down). Lanes are
// exchanged within groups of `width`, a power of two; past the edge a lane receives its own value.
// [PTX ISA, "Data Movement and Conversion Instructions: shfl.sync"]
#define TL_SHUFFLE(name, intrinsic)                                                                        \
  template <int width = warp_size, class T> TL_DEVICE T name(T value, int operand, uint32_t lanes = ~0u) { \
    if constexpr (sizeof(T) >= 4) {                                                                        \
      return intrinsic(lanes, value, operand, width);                                                      \
    } else {                                                                                               \
      uint32_t bits = 0;                                                                                   \
      __builtin_memcpy(&bits, &value, sizeof value);                                                       \
      bits = intrinsic(lanes, bits, operand, width);                                                       \
      __builtin_memcpy(&value, &bits, sizeof value);                                                       \
      return value;                                                                                        \
    }                                                                                                      \
  }
TL_SHUFFLE(shuffle_xor, __shfl_xor_sync)
TL_SHUFFLE(shuffle, __shfl_sync)
TL_SHUFFLE(shuffle_up, __shfl_up_sync)
TL_SHUFFLE(shuffle_down, __shfl_down_sync)
#undef TL_SHUFFLE

// Bit l is set if lane l's predicate is true. [PTX ISA, "vote.sync"]
TL_DEVICE uint64_t ballot(bool predicate, uint32_t lanes = ~0u) { return __ballot_sync(lanes, predicate); }
// match_any: the lanes with the same value as this one. match_all: all lanes if they have the same value, else 0.
// [PTX ISA, "match.sync"]
template <class T> TL_DEVICE uint64_t match_any(T value, uint32_t lanes = ~0u) {
  return __match_any_sync(lanes, value);
}
template <class T> TL_DEVICE uint64_t match_all(T value, uint32_t lanes = ~0u) {
  int all;
  return __match_all_sync(lanes, value, &all);
}

// Loads 8x8 matrices of 16-bit elements from shared memory: lane l passes the address of row l % 8 of matrix l / 8 (x2:
// lanes 0..15), 16 bytes aligned to 16. Register m of lane l receives elements 2 * (l % 4) and the next of row l / 4 of
// matrix m, or of its transpose (`trans`).
// [PTX ISA, "Warp Level Matrix Load Instruction: ldmatrix"]
TL_DEVICE void ldmatrix_x4(uint32_t* r, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
TL_DEVICE void ldmatrix_x4_trans(uint32_t* r, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}
TL_DEVICE void ldmatrix_x2(uint32_t* r, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
TL_DEVICE void ldmatrix_x2_trans(uint32_t* r, const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

// first_set: the 1-based position of the lowest set bit, 0 if there is none. popcount: the number of set bits.
TL_DEVICE int first_set(uint32_t bits) { return __ffs(static_cast<int>(bits)); }
TL_DEVICE int first_set(uint64_t bits) { return __ffsll(static_cast<long long>(bits)); }
TL_DEVICE uint32_t popcount(uint32_t bits) { return static_cast<uint32_t>(__popc(bits)); }
TL_DEVICE uint64_t popcount(uint64_t bits) { return static_cast<uint64_t>(__popcll(bits)); }

}  // namespace tl
