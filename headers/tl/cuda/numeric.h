// 16-bit floating point: CUDA's own types under names of ours.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "kernel.h"

namespace tl {

using half = __half;
using bfloat16 = __nv_bfloat16;

// Two values, each rounded to nearest even, packed into 32 bits: `low` in bits 0..15. One instruction.
// [PTX ISA, "Data Movement and Conversion Instructions: cvt"]
TL_DEVICE uint32_t pack2(float low, float high, half) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
TL_DEVICE uint32_t pack2(float low, float high, bfloat16) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

}  // namespace tl
