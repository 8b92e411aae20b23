// Arithmetic with an explicit rounding mode, never contracted by the compiler. Any thread.
// [CUDA Math API, "Single Precision Intrinsics", "Double Precision Intrinsics"]
#pragma once
#include "kernel.h"

namespace tl {
namespace rounded {

#define TL_ROUNDED(mode)                                                                      \
  TL_DEVICE float add_##mode(float x, float y) { return __fadd_##mode(x, y); }                \
  TL_DEVICE float subtract_##mode(float x, float y) { return __fsub_##mode(x, y); }           \
  TL_DEVICE float multiply_##mode(float x, float y) { return __fmul_##mode(x, y); }           \
  TL_DEVICE float divide_##mode(float x, float y) { return __fdiv_##mode(x, y); }             \
  TL_DEVICE float fma_##mode(float x, float y, float z) { return __fmaf_##mode(x, y, z); }    \
  TL_DEVICE float reciprocal_##mode(float x) { return __frcp_##mode(x); }                     \
  TL_DEVICE float sqrt_##mode(float x) { return __fsqrt_##mode(x); }                          \
  TL_DEVICE double add_##mode(double x, double y) { return __dadd_##mode(x, y); }             \
  TL_DEVICE double subtract_##mode(double x, double y) { return __dsub_##mode(x, y); }        \
  TL_DEVICE double multiply_##mode(double x, double y) { return __dmul_##mode(x, y); }        \
  TL_DEVICE double divide_##mode(double x, double y) { return __ddiv_##mode(x, y); }          \
  TL_DEVICE double fma_##mode(double x, double y, double z) { return __fma_##mode(x, y, z); } \
  TL_DEVICE double reciprocal_##mode(double x) { return __drcp_##mode(x); }                   \
  TL_DEVICE double sqrt_##mode(double x) { return __dsqrt_##mode(x); }
TL_ROUNDED(rn)
TL_ROUNDED(rz)
TL_ROUNDED(ru)
TL_ROUNDED(rd)
#undef TL_ROUNDED
TL_DEVICE float rsqrt_rn(float x) { return __frsqrt_rn(x); }

}  // namespace rounded
}  // namespace tl
