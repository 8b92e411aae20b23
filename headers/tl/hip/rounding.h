// Arithmetic rounded to nearest even, never contracted by the compiler. Any thread.
#pragma once
#include "kernel.h"

namespace tl {
namespace rounded {

#define TL_APART _Pragma("clang fp contract(off)")  // for the enclosing block
#define TL_ROUNDED(T, fma, sqrt)                               \
  TL_DEVICE T add_rn(T x, T y) { TL_APART return x + y; }      \
  TL_DEVICE T subtract_rn(T x, T y) { TL_APART return x - y; } \
  TL_DEVICE T multiply_rn(T x, T y) { TL_APART return x * y; } \
  TL_DEVICE T divide_rn(T x, T y) { TL_APART return x / y; }   \
  TL_DEVICE T fma_rn(T x, T y, T z) { return fma(x, y, z); }   \
  TL_DEVICE T reciprocal_rn(T x) { return T(1) / x; }          \
  TL_DEVICE T sqrt_rn(T x) { return sqrt(x); }
TL_ROUNDED(float, __builtin_fmaf, __builtin_sqrtf)
TL_ROUNDED(double, __builtin_fma, __builtin_sqrt)
#undef TL_ROUNDED
#undef TL_APART
// Other modes: instructions round as the wave's MODE register specifies, which the compiler assumes to be nearest even.
// [AMD Instinct MI300 ISA, "Mode Register"]
#define TL_ROUNDED(T, mode)                   \
  TL_DEVICE T add_##mode(T, T) = delete;      \
  TL_DEVICE T subtract_##mode(T, T) = delete; \
  TL_DEVICE T multiply_##mode(T, T) = delete; \
  TL_DEVICE T divide_##mode(T, T) = delete;   \
  TL_DEVICE T fma_##mode(T, T, T) = delete;   \
  TL_DEVICE T reciprocal_##mode(T) = delete;  \
  TL_DEVICE T sqrt_##mode(T) = delete;
TL_ROUNDED(float, rz)
TL_ROUNDED(float, ru)
TL_ROUNDED(float, rd)
TL_ROUNDED(double, rz)
TL_ROUNDED(double, ru)
TL_ROUNDED(double, rd)
#undef TL_ROUNDED
TL_DEVICE float rsqrt_rn(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }

}  // namespace rounded
}  // namespace tl
