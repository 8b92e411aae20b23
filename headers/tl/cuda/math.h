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
