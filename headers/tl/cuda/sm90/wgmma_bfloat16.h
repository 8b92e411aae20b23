// wgmma of bfloat16: see wgmma_instructions.h.
#pragma once
#include "wgmma_instructions.h"

namespace tl {
namespace cuda {

template <> struct WgmmaOperandOf<bfloat16> {
  using type = bfloat16;
};

#define TL_WGMMA_BFLOAT16(n, ...) TL_WGMMA_16(bfloat16, float, "k16.f32.bf16.bf16", n, n, __VA_ARGS__)
TL_EVERY_WIDTH(TL_WGMMA_BFLOAT16)
#undef TL_WGMMA_BFLOAT16

}  // namespace cuda
}  // namespace tl
