// Approximations by the special-function unit, one instruction each; subnormal numbers are flushed to zero, except
// by tanh. Any thread. Error bounds: [PTX ISA, "Floating Point Instructions: ex2, lg2, rsqrt, rcp, tanh, sin, cos"]
#pragma once
#include "kernel.h"

namespace tl {

// 2^x; 2 ulp.
TL_DEVICE float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// log2 x; absolute error 2^-22 near 1, about 2 ulp elsewhere.
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
// a / b, correctly rounded; within 1 ulp for |a| < 2^-100 and for quotients below 2^-126. The terms in b alone are
// computed once for all a that share b; each a then takes one multiplication and two FMAs.
// [Brisebarre, Muller, Raina, "Accelerating correctly rounded floating-point division when the divisor is known in
// advance", 2004]
TL_DEVICE float divide_rounded(float a, float b) {
  const float scale = ::fabsf(b) > 0x1p100f ? 0x1p-32f : ::fabsf(b) < 0x1p-64f ? 0x1p64f : 1.0f;
  const float divisor = b * scale, reciprocal = __frcp_rn(divisor);  // normal unless b is 0, infinite or NaN
  const float dividend = a * scale, quotient = dividend * reciprocal;
  const float rest = ::fmaf(-quotient, divisor, dividend);
  const float corrected = ::fmaf(rest, reciprocal, quotient);
  // Select the uncorrected quotient if the remainder is 0, infinite or NaN; the compiler would branch.
  float result;
  asm("{\n\t.reg .pred has;\n\t.reg .f32 size;\n\t"
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
// To an integer of 32 or 64 bits, truncated: out of range saturates; NaN becomes 0, but from double, or to 64 bits, the
// highest bit alone. [PTX ISA, cvt]
template <class To, class From> TL_DEVICE To truncate(From x) { return static_cast<To>(x); }

}  // namespace tl
