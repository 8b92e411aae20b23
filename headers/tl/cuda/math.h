// The special-function unit: approximations in one instruction, denormals flushed to zero. Any thread.
// [PTX ISA, "Floating Point Instructions: ex2, lg2, rsqrt, rcp, tanh, sin, cos"] gives the error bounds.
#pragma once
#include "kernel.h"

namespace tl {

// 2 to the power x; 2 ulp.
TL_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// The logarithm to base 2; absolute error 2^-22 near 1, elsewhere 2 ulp or so.
TL_DEVICE float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 / sqrt(x); relative error 2^-22.9.
TL_DEVICE float rsqrt_approx(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// 1 / x; 1 ulp.
TL_DEVICE float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// a / b, rounded alike; within an ulp for |a| < 2^-100 and for quotients below 2^-126. What hangs on b alone is
// computed once for all a that share it; each a then takes a multiplication and two fused ones, which round right
// [Brisebarre, Muller, Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
// advance", 2004].
TL_DEVICE float divide_rounded(float a, float b) {
  const float scale = ::fabsf(b) > 0x1p100f ? 0x1p-32f : ::fabsf(b) < 0x1p-64f ? 0x1p64f : 1.0f;
  const float divisor = b * scale, reciprocal = __frcp_rn(divisor);  // within float's range, but for zero and infinity
  const float dividend = a * scale, quotient = dividend * reciprocal;
  const float rest = ::fmaf(-quotient, divisor, dividend);
  const float corrected = ::fmaf(rest, reciprocal, quotient);
  float result;  // the quotient itself where there is no rest: of zeros, infinities and NaN
  asm("{\n\t.reg .pred has;\n\t.reg .f32 size;\n\t"  // a choice, for which the compiler would branch
      "abs.f32 size, %1;\n\t"
      "setp.gt.f32 has, size, 0f00000000;\n\t"
      "setp.lt.and.f32 has, size, 0f7F800000, has;\n\t"
      "selp.f32 %0, %2, %3, has;\n\t}"
      : "=f"(result)
      : "f"(rest), "f"(corrected), "f"(quotient));
  return result;
}
// Relative error 2^-11.
TL_DEVICE float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Absolute error 2^-20.5 for |x| <= pi.
TL_DEVICE float sin_approx(float x) {
  float y;
  asm("sin.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TL_DEVICE float cos_approx(float x) {
  float y;
  asm("cos.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace tl
