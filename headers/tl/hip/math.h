// Approximations by the transcendental unit, one instruction each, except tanh. Any thread.
// [AMD Instinct MI300 ISA, "V_EXP_F32", "V_LOG_F32", "V_RSQ_F32", "V_RCP_F32": 1 ulp]
#pragma once
#include "kernel.h"
#include "../common/truncate.h"

namespace tl {

TL_DEVICE float exp2_approx(float x) { return __builtin_amdgcn_exp2f(x); }
TL_DEVICE float log2_approx(float x) { return __builtin_amdgcn_logf(x); }
TL_DEVICE float rsqrt_approx(float x) { return __builtin_amdgcn_rsqf(x); }
TL_DEVICE float reciprocal_approx(float x) { return __builtin_amdgcn_rcpf(x); }
// a / b, by the compiler's division.
TL_DEVICE float divide_rounded(float a, float b) { return a / b; }
// (e - 1) / (e + 1) with e = exp(2 x), in the form 1 - 2 / (e + 1), which gives 1 for e = infinity.
TL_DEVICE float tanh_approx(float x) {
  return 1.0f - 2.0f * reciprocal_approx(exp2_approx(x * 2.885390081777927f) + 1.0f);
}
// v_sin_f32 and v_cos_f32 take the angle in revolutions.
TL_DEVICE float sin_approx(float x) { return __builtin_amdgcn_sinf(x * 0.15915494309189535f); }
TL_DEVICE float cos_approx(float x) { return __builtin_amdgcn_cosf(x * 0.15915494309189535f); }
// One instruction truncates a float to 32 bits, and saturates. Others are of several, or clang relies on a double being
// in range. [AMD Instinct MI300 ISA, "V_CVT_I32_F32"]
template <class To, class From> TL_DEVICE To truncate(From x) {
  if constexpr (sizeof(To) == 4 && sizeof(From) == 4)
    return static_cast<To>(x);
  else
    return saturating_truncate<To>(x);
}

}  // namespace tl
