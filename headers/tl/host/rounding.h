// Arithmetic with an explicit rounding mode, which the CPU's rounding mode implements.
#pragma once
#include <cfenv>
#include <cmath>
#include "kernel.h"

namespace tl {
namespace rounded {

// Sets the CPU's rounding mode while it lives. volatile holds operands and result between the two mode changes.
// No templates: each use of a precompiled header instantiates those that its functions use anew.
struct InMode {
  const int before = std::fegetround();
  TL_DEVICE explicit InMode(int mode) { std::fesetround(mode); }
  TL_DEVICE ~InMode() { std::fesetround(before); }
  static TL_DEVICE float held(float x) {
    volatile float held = x;
    return held;
  }
  static TL_DEVICE double held(double x) {
    volatile double held = x;
    return held;
  }
};

#define TL_ROUNDED_AS(T, name, mode, expression, ...) \
  TL_DEVICE T name(__VA_ARGS__) {                     \
    const InMode in(mode);                            \
    return in.held(expression);                       \
  }
#define TL_ROUNDED_OF(T, name, mode)                                                              \
  TL_ROUNDED_AS(T, add_##name, mode, in.held(x) + in.held(y), T x, T y)                           \
  TL_ROUNDED_AS(T, subtract_##name, mode, in.held(x) - in.held(y), T x, T y)                      \
  TL_ROUNDED_AS(T, multiply_##name, mode, in.held(x) * in.held(y), T x, T y)                      \
  TL_ROUNDED_AS(T, divide_##name, mode, in.held(x) / in.held(y), T x, T y)                        \
  TL_ROUNDED_AS(T, fma_##name, mode, std::fma(in.held(x), in.held(y), in.held(z)), T x, T y, T z) \
  TL_ROUNDED_AS(T, reciprocal_##name, mode, 1 / in.held(x), T x)                                  \
  TL_ROUNDED_AS(T, sqrt_##name, mode, std::sqrt(in.held(x)), T x)
#define TL_ROUNDED(name, mode)     \
  TL_ROUNDED_OF(float, name, mode) \
  TL_ROUNDED_OF(double, name, mode)
TL_ROUNDED(rn, FE_TONEAREST)
TL_ROUNDED(rz, FE_TOWARDZERO)
TL_ROUNDED(ru, FE_UPWARD)
TL_ROUNDED(rd, FE_DOWNWARD)
#undef TL_ROUNDED
#undef TL_ROUNDED_OF
#undef TL_ROUNDED_AS
TL_DEVICE float rsqrt_rn(float x) { return static_cast<float>(1.0L / std::sqrt(static_cast<long double>(x))); }

}  // namespace rounded
}  // namespace tl
