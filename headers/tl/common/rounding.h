// Arithmetic with an explicit rounding mode: to nearest even (rn), toward zero (rz), up (ru) or down (rd). It is never
// contracted. half and bfloat16 are computed in float and rounded to nearest.
#pragma once
#include "math.h"

namespace tl {

// The type in which operands are computed.
template <class T> using Computed = std::conditional_t<std::is_same<T, double>::value, double, float>;

#define TL_ROUNDED_1(name)                                           \
  struct Rounded_##name {                                            \
    template <class T> TL_DEVICE T operator()(T x) const {           \
      return convert<T>(rounded::name(static_cast<Computed<T>>(x))); \
    }                                                                \
  };                                                                 \
  template <class X> TL_DEVICE auto name(X x) { return apply(Rounded_##name{}, x); }
#define TL_ROUNDED_2(name)                                                              \
  struct Rounded_##name {                                                               \
    template <class A, class B> TL_DEVICE Wider<A, B> operator()(A a, B b) const {      \
      using T = Computed<Wider<A, B>>;                                                  \
      return convert<Wider<A, B>>(rounded::name(static_cast<T>(a), static_cast<T>(b))); \
    }                                                                                   \
  };                                                                                    \
  template <class A, class B> TL_DEVICE auto name(A a, B b) { return apply(Rounded_##name{}, a, b); }
#define TL_ROUNDED_3(name)                                                                                           \
  struct Rounded_##name {                                                                                            \
    template <class A, class B, class C> TL_DEVICE Wider<Wider<A, B>, C> operator()(A a, B b, C c) const {           \
      using T = Computed<Wider<Wider<A, B>, C>>;                                                                     \
      return convert<Wider<Wider<A, B>, C>>(rounded::name(static_cast<T>(a), static_cast<T>(b), static_cast<T>(c))); \
    }                                                                                                                \
  };                                                                                                                 \
  template <class A, class B, class C> TL_DEVICE auto name(A a, B b, C c) { return apply(Rounded_##name{}, a, b, c); }
#define TL_ROUNDED(mode)          \
  TL_ROUNDED_2(add_##mode)        \
  TL_ROUNDED_2(subtract_##mode)   \
  TL_ROUNDED_2(multiply_##mode)   \
  TL_ROUNDED_2(divide_##mode)     \
  TL_ROUNDED_3(fma_##mode)        \
  TL_ROUNDED_1(reciprocal_##mode) \
  TL_ROUNDED_1(sqrt_##mode)
TL_ROUNDED(rn)
TL_ROUNDED_1(rsqrt_rn)
TL_ROUNDED(rz)
TL_ROUNDED(ru)
TL_ROUNDED(rd)
#undef TL_ROUNDED
#undef TL_ROUNDED_1
#undef TL_ROUNDED_2
#undef TL_ROUNDED_3

}  // namespace tl
