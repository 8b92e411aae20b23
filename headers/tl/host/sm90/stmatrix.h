// stmatrix on the CPU engine: as cuda/sm90/stmatrix.h.
#pragma once
#include "../engine.h"
#include "../kernel.h"

namespace tl {

TL_DEVICE void stmatrix_x4(void* row, const uint32_t* r) { tl_engine_stmatrix(row, r, 0); }
TL_DEVICE void stmatrix_x4_transposed(void* column, const uint32_t* r) { tl_engine_stmatrix(column, r, 1); }

}  // namespace tl
