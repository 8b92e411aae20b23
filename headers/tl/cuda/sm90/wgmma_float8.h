// wgmma of the 8-bit floating-point types: see wgmma_instructions.h.
#pragma once
#include "wgmma_instructions.h"

namespace tl {
namespace cuda {

#define TL_WGMMA_E4M3(n, i0, i1, i2, ...) TL_WGMMA_K(E4M3, float, "k32.f32.e4m3.e4m3", ", 1, 1", n, i0, i1, i2)
TL_EVERY_WIDTH(TL_WGMMA_E4M3)
#define TL_WGMMA_E5M2(n, i0, i1, i2, ...) TL_WGMMA_K(E5M2, float, "k32.f32.e5m2.e5m2", ", 1, 1", n, i0, i1, i2)
TL_EVERY_WIDTH(TL_WGMMA_E5M2)
#undef TL_WGMMA_E4M3
#undef TL_WGMMA_E5M2

}  // namespace cuda
}  // namespace tl
