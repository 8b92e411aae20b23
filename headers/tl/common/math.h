// Mathematics on scalars and Vec. half and bfloat16 are computed in float and rounded once.
#pragma once
#include <cmath>
#include "vec.h"

namespace tl {

// Sizes and indices, on the host too. Division rounds up, or towards minus infinity; divisors are positive.
TL_BOTH constexpr int ceildiv(int a, int b) { return a / b + (a % b > 0); }
TL_BOTH constexpr int floordiv(int a, int b) { return a / b - (a % b < 0); }
TL_BOTH constexpr int floormod(int a, int b) { return a % b + (a % b < 0 ? b : 0); }
TL_BOTH constexpr int64_t ceildiv(int64_t a, int64_t b) { return a / b + (a % b > 0); }
TL_BOTH constexpr int64_t floordiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }
TL_BOTH constexpr int64_t floormod(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }
TL_BOTH constexpr int min(int a, int b) { return a < b ? a : b; }
TL_BOTH constexpr int max(int a, int b) { return a < b ? b : a; }

// Plus infinity. For half and bfloat16 it is a float, which converts.
template <class T> using FloatOf = std::conditional_t<is_small_float<T>, float, T>;
template <class T> constexpr FloatOf<T> infinity = static_cast<FloatOf<T>>(__builtin_huge_val());

// Each function: a struct that knows the scalars (the result for an integer is a float), and the tl:: name, which takes
// scalars, Vec and elements of tensors.
#define TL_FUNCTION(Name, name, for_float, for_double)                                                   \
  struct Name {                                                                                          \
    TL_DEVICE float operator()(float x) const { return for_float; }                                      \
    TL_DEVICE double operator()(double x) const { return for_double; }                                   \
    template <class T> TL_DEVICE std::conditional_t<is_small_float<T>, T, float> operator()(T x) const { \
      return convert<std::conditional_t<is_small_float<T>, T, float>>((*this)(static_cast<float>(x)));   \
    }                                                                                                    \
  };                                                                                                     \
  template <class X> TL_DEVICE auto name(const X& x) { return apply(Name{}, x); }
TL_FUNCTION(Exp, exp, ::expf(x), ::exp(x))
TL_FUNCTION(Exp2, exp2, exp2_approx(x), ::exp2(x))
TL_FUNCTION(Log, log, ::logf(x), ::log(x))
TL_FUNCTION(Log2, log2, ::log2f(x), ::log2(x))
TL_FUNCTION(Sqrt, sqrt, ::sqrtf(x), ::sqrt(x))
TL_FUNCTION(Rsqrt, rsqrt, rsqrt_approx(x), 1.0 / ::sqrt(x))
TL_FUNCTION(Tanh, tanh, ::tanhf(x), ::tanh(x))
TL_FUNCTION(Sigmoid, sigmoid, 1.0f / (1.0f + ::expf(-x)), 1.0 / (1.0 + ::exp(-x)))
TL_FUNCTION(Sin, sin, ::sinf(x), ::sin(x))
TL_FUNCTION(Cos, cos, ::cosf(x), ::cos(x))
TL_FUNCTION(Erf, erf, ::erff(x), ::erf(x))
TL_FUNCTION(Floor, floor, ::floorf(x), ::floor(x))
TL_FUNCTION(Ceil, ceil, ::ceilf(x), ::ceil(x))
TL_FUNCTION(Round, round, ::rintf(x), ::rint(x))  // halves to even
TL_FUNCTION(Trunc, trunc, ::truncf(x), ::trunc(x))
#undef TL_FUNCTION

// The type in which two scalars are compared: their own, or the wider one.
template <class A, class B>
using Wider = std::conditional_t<std::is_same<A, B>::value, A,
                                 std::common_type_t<std::conditional_t<is_small_float<A>, float, A>,
                                                    std::conditional_t<is_small_float<B>, float, B>>>;

// Of two floats, the larger or smaller; a NaN loses against a number.
struct Max {
  template <class A, class B> TL_DEVICE Wider<A, B> operator()(A a, B b) const {
    using T = Wider<A, B>;
    if constexpr (std::is_same<T, double>::value)
      return ::fmax(double(a), double(b));
    else if constexpr (is_float<T>)
      return convert<T>(::fmaxf(static_cast<float>(a), static_cast<float>(b)));
    else
      return T(a) < T(b) ? T(b) : T(a);
  }
};
struct Min {
  template <class A, class B> TL_DEVICE Wider<A, B> operator()(A a, B b) const {
    using T = Wider<A, B>;
    if constexpr (std::is_same<T, double>::value)
      return ::fmin(double(a), double(b));
    else if constexpr (is_float<T>)
      return convert<T>(::fminf(static_cast<float>(a), static_cast<float>(b)));
    else
      return T(a) < T(b) ? T(a) : T(b);
  }
};
struct Abs {
  template <class T> TL_DEVICE T operator()(T x) const {
    if constexpr (std::is_same<T, double>::value)
      return ::fabs(x);
    else if constexpr (is_float<T>)
      return convert<T>(::fabsf(static_cast<float>(x)));
    else if constexpr (std::is_unsigned<T>::value)
      return x;
    else
      return x < 0 ? T(-x) : x;
  }
};
struct Pow {
  template <class A, class B> TL_DEVICE Wider<A, B> operator()(A a, B b) const {
    using T = Wider<A, B>;
    if constexpr (std::is_same<T, double>::value)
      return ::pow(double(a), double(b));
    else
      return convert<T>(::powf(static_cast<float>(a), static_cast<float>(b)));
  }
};
template <class A, class B> TL_DEVICE auto max(const A& a, const B& b) { return apply(Max{}, a, b); }
template <class A, class B> TL_DEVICE auto min(const A& a, const B& b) { return apply(Min{}, a, b); }
template <class A, class B> TL_DEVICE auto pow(const A& a, const B& b) { return apply(Pow{}, a, b); }
template <class A> TL_DEVICE auto abs(const A& a) { return apply(Abs{}, a); }

// A number, or each element of a Vec, as another type.
template <class To, class X> TL_DEVICE auto cast(const X& x) { return convert<To>(value(x)); }

// a where the condition holds, else b. Both are evaluated.
template <class Condition, class A, class B> TL_DEVICE auto select(const Condition& condition, const A& a, const B& b) {
  constexpr int n = packet_size<Condition> > 0 ? packet_size<Condition> : common_size<A, B>;
  const auto c = value(condition);
  const auto x = value(a);
  const auto y = value(b);
  if constexpr (n == 0) {
    return c ? x : y;
  } else {
    Vec<std::decay_t<decltype(element(x, 0))>, n> result;
    TL_UNROLL
    for (int i = 0; i < n; ++i) result.at[i] = element(c, i) ? element(x, i) : element(y, i);
    return result;
  }
}

}  // namespace tl
