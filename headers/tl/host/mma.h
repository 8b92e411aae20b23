// mma.sync: d += a * b on registers. Called by: every lane of the warp. [PTX ISA, Matrix fragments for mma.m16n8k*]
// The engine accumulates in ascending k, in float, without fused rounding of pairs. The order and rounding of a tensor
// core differ: only integer-valued data gives bit-identical results.
#pragma once
#include "../threads.h"
#include "engine.h"
#include "numeric.h"
#include "warp.h"

namespace tl {

TL_DEVICE void mma_m16n8k16(float* d, const uint32_t* a, const uint32_t* b, half) {
  tl_engine_mma(d, a, b, TL_ENGINE_HALF);
}
TL_DEVICE void mma_m16n8k16(float* d, const uint32_t* a, const uint32_t* b, bfloat16) {
  tl_engine_mma(d, a, b, TL_ENGINE_BFLOAT16);
}
// half accumulators: two registers of two elements each.
TL_DEVICE void mma_m16n8k16(uint32_t* d, const uint32_t* a, const uint32_t* b, half) { tl_engine_mma_half(d, a, b); }
TL_DEVICE void mma_m16n8k8_tf32(float* d, const uint32_t* a, const uint32_t* b) {
  tl_engine_mma(d, a, b, TL_ENGINE_TF32);
}
TL_DEVICE void mma_m16n8k32_int8(int32_t* d, const uint32_t* a, const uint32_t* b) {
  tl_engine_mma(d, a, b, TL_ENGINE_INT8);
}
TL_DEVICE void mma_sparse(float* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, half) {
  tl_engine_mma_sparse(d, a, b, metadata, TL_ENGINE_HALF);
}
TL_DEVICE void mma_sparse(float* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, bfloat16) {
  tl_engine_mma_sparse(d, a, b, metadata, TL_ENGINE_BFLOAT16);
}
TL_DEVICE void mma_sparse(int32_t* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, int8_t) {
  tl_engine_mma_sparse(d, a, b, metadata, TL_ENGINE_INT8);
}
struct Int4Instructions {
#ifdef TL_WITHOUT_INT4_PRODUCTS  // for tests of the code for targets without 4-bit MMA
  static constexpr bool exist = false;
#else
  static constexpr bool exist = true;
#endif
  static TL_DEVICE void mma_m16n8k64(int32_t* d, const uint32_t* a, const uint32_t* b, bool is_signed) {
    tl_engine_mma(d, a, b, is_signed ? TL_ENGINE_INT4 : TL_ENGINE_UINT4);
  }
};
// Each lane holds one element of A (row lane / 4, k = lane % 4), one of B, and two of D.
TL_DEVICE void mma_m8n8k4_double(double* d, double a, double b) {
  tl_engine_check_accumulators(d, 2, TL_ENGINE_DOUBLE);
  for (int k = 0; k < 4; ++k) {
    const double left = shuffle(a, lane() / 4 * 4 + k);
    for (int i = 0; i < 2; ++i) d[i] += left * shuffle(b, (lane() % 4 * 2 + i) * 4 + k);
  }
  tl_engine_mark_computed(d, 2, TL_ENGINE_DOUBLE);
}

}  // namespace tl
