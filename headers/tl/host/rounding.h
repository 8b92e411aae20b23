// Arithmetic with an explicit rounding mode, which the CPU's rounding mode implements.
#pragma once
#include <cfenv>
#include <cmath>
#include "kernel.h"

namespace tl {
namespace rounded {

// Evaluates compute(x, y, z) in a rounding mode; volatile keeps it between the two mode changes.
template <class T, class F> TL_DEVICE T in_mode(int mode, F compute, T x, T y = 0, T z = 0) {
  volatile T operands[] = {x, y, z};
  const int before = std::fegetround();
  std::fesetround(mode);
  volatile T result = compute(T(operands[0]), T(operands[1]), T(operands[2]));
  std::fesetround(before);
  return result;
}

#define TL_ROUNDED_OF(T, name, mode)                                                \
  TL_DEVICE T add_##name(T x, T y) {                                                \
    return in_mode(mode, [](T a, T b, T) { return a + b; }, x, y);                  \
  }                                                                                 \
  TL_DEVICE T subtract_##name(T x, T y) {                                           \
    return in_mode(mode, [](T a, T b, T) { return a - b; }, x, y);                  \
  }                                                                                 \
  TL_DEVICE T multiply_##name(T x, T y) {                                           \
    return in_mode(mode, [](T a, T b, T) { return a * b; }, x, y);                  \
  }                                                                                 \
  TL_DEVICE T divide_##name(T x, T y) {                                             \
    return in_mode(mode, [](T a, T b, T) { return a / b; }, x, y);                  \
  }                                                                                 \
  TL_DEVICE T fma_##name(T x, T y, T z) {                                           \
    return in_mode(mode, [](T a, T b, T c) { return std::fma(a, b, c); }, x, y, z); \
  }                                                                                 \
  TL_DEVICE T reciprocal_##name(T x) {                                              \
    return in_mode(mode, [](T a, T, T) { return 1 / a; }, x);                       \
  }                                                                                 \
  TL_DEVICE T sqrt_##name(T x) {                                                    \
    return in_mode(mode, [](T a, T, T) { return std::sqrt(a); }, x);                \
  }
#define TL_ROUNDED(name, mode)     \
  TL_ROUNDED_OF(float, name, mode) \
  TL_ROUNDED_OF(double, name, mode)
TL_ROUNDED(rn, FE_TONEAREST)
TL_ROUNDED(rz, FE_TOWARDZERO)
TL_ROUNDED(ru, FE_UPWARD)
TL_ROUNDED(rd, FE_DOWNWARD)
#undef TL_ROUNDED
#undef TL_ROUNDED_OF
TL_DEVICE float rsqrt_rn(float x) { return static_cast<float>(1.0L / std::sqrt(static_cast<long double>(x))); }

}  // namespace rounded
}  // namespace tl
