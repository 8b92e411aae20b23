// wgmma of half: see wgmma_instructions.h.
#pragma once
#include "wgmma_instructions.h"

namespace tl {
namespace cuda {

template <> struct WgmmaOperandOf<half> {
  using type = half;
};

#define TL_WGMMA_HALF(...) TL_WGMMA_16(half, "k16.f32.f16.f16", __VA_ARGS__)
TL_EVERY_WIDTH(TL_WGMMA_HALF)
#undef TL_WGMMA_HALF

}  // namespace cuda
}  // namespace tl
