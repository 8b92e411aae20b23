// wgmma of tf32 operands: see wgmma_instructions.h.
#pragma once
#include "wgmma_instructions.h"

namespace tl {
struct tfloat32;
namespace cuda {

template <> struct WgmmaOperandOf<float> {
  using type = TF32;
};
template <> struct WgmmaOperandOf<tfloat32> {
  using type = TF32;
};

#define TL_WGMMA_TF32(n, i0, i1, i2, ...) TL_WGMMA_K(TF32, float, "k8.f32.tf32.tf32", ", 1, 1", n, i0, i1, i2)
TL_EVERY_WIDTH(TL_WGMMA_TF32)
#undef TL_WGMMA_TF32

}  // namespace cuda
}  // namespace tl
