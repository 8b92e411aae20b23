// stmatrix, the inverse of ldmatrix. [PTX ISA, "Warp Level Matrix Store Instruction: stmatrix"]
#pragma once
#include "../memory.h"

namespace tl {

// Stores four 8x8 matrices of 16-bit elements to shared memory: lane l passes the address of row l % 8 of matrix l / 8,
// 16 bytes aligned to 16. Register m of lane l holds elements 2 * (l % 4) and the next of row l / 4 of matrix m. Called
// by: every lane of the warp. No memory ordering.
TL_DEVICE void stmatrix_x4(void* row, const uint32_t* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

// The same with each matrix transposed: lane l passes the address of column l % 8 of matrix l / 8.
TL_DEVICE void stmatrix_x4_transposed(void* column, const uint32_t* r) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(column)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace tl
