// Warp collectives. Who: every lane of the warp, at the same call. None of them orders memory.
#pragma once
#include "memory.h"

namespace tl {

// The value of another lane: lane() ^ mask, the given lane, the lane `delta` below (up) or above (down; at the edge a
// lane keeps its own). [PTX ISA, "Data Movement and Conversion Instructions: shfl.sync"]
template <class T> TL_DEVICE T shuffle_xor(T value, int mask) { return __shfl_xor_sync(~0u, value, mask); }
template <class T> TL_DEVICE T shuffle(T value, int lane) { return __shfl_sync(~0u, value, lane); }
template <class T> TL_DEVICE T shuffle_up(T value, int delta) { return __shfl_up_sync(~0u, value, delta); }
template <class T> TL_DEVICE T shuffle_down(T value, int delta) { return __shfl_down_sync(~0u, value, delta); }

// Bit l is set when lane l's predicate holds. [PTX ISA, "vote.sync"]
TL_DEVICE uint64_t ballot(bool predicate) { return __ballot_sync(~0u, predicate); }

// Loads 8x8 matrices of 16-bit elements from shared memory: lane l gives the address of row l % 8 of matrix l / 8 (x2:
// lanes 0..15 do), 16 bytes at a multiple of 16. Register m of lane l receives row l / 4, elements 2 * (l % 4) and the
// next, of matrix m; with `trans` the same elements of the matrix's transpose.
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

}  // namespace tl
