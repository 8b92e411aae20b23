// wgmma of half: see wgmma_instructions.h.
#pragma once
#include "wgmma_instructions.h"

namespace tl {
namespace cuda {

#define TL_WGMMA_HALF(n, ...) TL_WGMMA_16(half, float, "k16.f32.f16.f16", n, n, __VA_ARGS__)
TL_EVERY_WIDTH(TL_WGMMA_HALF)
#undef TL_WGMMA_HALF

}  // namespace cuda
}  // namespace tl
