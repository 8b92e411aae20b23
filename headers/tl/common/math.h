// Mathematical functions of scalars and Vec. half and bfloat16 are computed in float and rounded once.
#pragma once
#include "vec.h"

namespace tl {

// Integer division for sizes and indices, also on the host. ceildiv rounds up, floordiv towards minus infinity;
// divisors are positive.
TL_BOTH constexpr int ceildiv(int a, int b) { return a / b + (a % b > 0); }
TL_BOTH constexpr int floordiv(int a, int b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
TL_BOTH constexpr int floormod(int a, int b) { return a - floordiv(a, b) * b; }
TL_BOTH constexpr int64_t ceildiv(int64_t a, int64_t b) { return a / b + (a % b > 0); }
TL_BOTH constexpr int64_t floordiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }
TL_BOTH constexpr int64_t floormod(int64_t a, int64_t b) { return a - floordiv(a, b) * b; }
// Other or mixed integer types: int64_t if one of them has 64 bits, else int.
template <class A, class B>
using Quotient = std::enable_if_t<std::is_integral<A>::value && std::is_integral<B>::value,
                                  std::conditional_t<(sizeof(A) > 4 || sizeof(B) > 4), int64_t, int>>;
template <class A, class B, class C = Quotient<A, B>> TL_BOTH constexpr C ceildiv(A a, B b) {
  return ceildiv(C(a), C(b));
}
template <class A, class B, class C = Quotient<A, B>> TL_BOTH constexpr C floordiv(A a, B b) {
  return floordiv(C(a), C(b));
}
template <class A, class B, class C = Quotient<A, B>> TL_BOTH constexpr C floormod(A a, B b) {
  return floormod(C(a), C(b));
}
// Of vectors, element by element.
struct FloorDiv {
  template <class A, class B> TL_DEVICE auto operator()(A a, B b) const { return floordiv(a, b); }
};
struct FloorMod {
  template <class A, class B> TL_DEVICE auto operator()(A a, B b) const { return floormod(a, b); }
};
template <class A, class B, class = IfPacket<A, B>> TL_DEVICE auto floordiv(A a, B b) {
  return apply(FloorDiv{}, a, b);
}
template <class A, class B, class = IfPacket<A, B>> TL_DEVICE auto floormod(A a, B b) {
  return apply(FloorMod{}, a, b);
}
TL_BOTH constexpr int min(int a, int b) { return a < b ? a : b; }
TL_BOTH constexpr int max(int a, int b) { return a < b ? b : a; }

// Positive infinity and a quiet NaN. For types narrower than float the constant is a float, which converts.
template <class T> using FloatOf = std::conditional_t<is_widened<T>, float, std::conditional_t<is_int4<T>, int, T>>;
template <class T> constexpr FloatOf<T> infinity = static_cast<FloatOf<T>>(__builtin_huge_val());
template <class T> constexpr FloatOf<T> nan = static_cast<FloatOf<T>>(__builtin_nan(""));

// For each function a struct that applies it to a scalar (integers give a float), and a tl:: function that takes
// scalars, Vec and elements of tensors.
#define TL_FUNCTION(Name, name, for_float, for_double)                                                   \
  struct Name {                                                                                          \
    TL_DEVICE float operator()(float x) const { return for_float; }                                      \
    TL_DEVICE double operator()(double x) const { return for_double; }                                   \
    template <class T> TL_DEVICE std::conditional_t<is_small_float<T>, T, float> operator()(T x) const { \
      return convert<std::conditional_t<is_small_float<T>, T, float>>((*this)(static_cast<float>(x)));   \
    }                                                                                                    \
  };                                                                                                     \
  template <class X> TL_DEVICE auto name(X x) { return apply(Name{}, x); }
TL_FUNCTION(Exp, exp, ::expf(x), ::exp(x))
TL_FUNCTION(Exp2, exp2, exp2_approx(x), ::exp2(x))
TL_FUNCTION(Exp10, exp10, ::exp10f(x), ::exp10(x))
TL_FUNCTION(Log, log, ::logf(x), ::log(x))
TL_FUNCTION(Log2, log2, ::log2f(x), ::log2(x))
TL_FUNCTION(Log10, log10, ::log10f(x), ::log10(x))
TL_FUNCTION(Log1p, log1p, ::log1pf(x), ::log1p(x))
TL_FUNCTION(Sqrt, sqrt, ::sqrtf(x), ::sqrt(x))
TL_FUNCTION(Rsqrt, rsqrt, rsqrt_approx(x), 1.0 / ::sqrt(x))
TL_FUNCTION(Tanh, tanh, ::tanhf(x), ::tanh(x))
TL_FUNCTION(Sigmoid, sigmoid, reciprocal_approx(1.0f + ::expf(-x)), 1.0 / (1.0 + ::exp(-x)))
TL_FUNCTION(Sin, sin, ::sinf(x), ::sin(x))
TL_FUNCTION(Cos, cos, ::cosf(x), ::cos(x))
TL_FUNCTION(Tan, tan, ::tanf(x), ::tan(x))
TL_FUNCTION(Asin, asin, ::asinf(x), ::asin(x))
TL_FUNCTION(Acos, acos, ::acosf(x), ::acos(x))
TL_FUNCTION(Atan, atan, ::atanf(x), ::atan(x))
TL_FUNCTION(Sinh, sinh, ::sinhf(x), ::sinh(x))
TL_FUNCTION(Cosh, cosh, ::coshf(x), ::cosh(x))
TL_FUNCTION(Erf, erf, ::erff(x), ::erf(x))
TL_FUNCTION(Floor, floor, ::floorf(x), ::floor(x))
TL_FUNCTION(Ceil, ceil, ::ceilf(x), ::ceil(x))
TL_FUNCTION(Round, round, ::rintf(x), ::rint(x))             // ties to even
TL_FUNCTION(RoundAway, round_away, ::roundf(x), ::round(x))  // ties away from zero
TL_FUNCTION(Trunc, trunc, ::truncf(x), ::trunc(x))
// Fast approximations. float: one or two instructions of the special-function unit, denormals are flushed; double: the
// same as the functions above. Errors: fast_exp 2 + |1.16 x| ulp, fast_exp10 2 + |2.95 x| ulp, fast_log2, fast_log and
// fast_log10 2^-21.6 absolute for x in [0.5, 2] and 3 ulp elsewhere, fast_sin and fast_cos 2^-20 absolute for |x| <= pi
// and larger with |x|, fast_tan is their quotient, fast_tanh 2^-11 relative, fast_reciprocal 1 ulp.
// [CUDA C++ Programming Guide, "Mathematical Functions: Intrinsic Functions"]
TL_FUNCTION(FastExp, fast_exp, exp2_approx(x * 1.4426950408889634f), ::exp(x))
TL_FUNCTION(FastExp10, fast_exp10, exp2_approx(x * 3.321928094887362f), ::exp10(x))
TL_FUNCTION(FastLog, fast_log, log2_approx(x) * 0.6931471805599453f, ::log(x))
TL_FUNCTION(FastLog2, fast_log2, log2_approx(x), ::log2(x))
TL_FUNCTION(FastLog10, fast_log10, log2_approx(x) * 0.3010299956639812f, ::log10(x))
TL_FUNCTION(FastSin, fast_sin, sin_approx(x), ::sin(x))
TL_FUNCTION(FastCos, fast_cos, cos_approx(x), ::cos(x))
TL_FUNCTION(FastTan, fast_tan, sin_approx(x) * reciprocal_approx(cos_approx(x)), ::tan(x))
TL_FUNCTION(FastTanh, fast_tanh, tanh_approx(x), ::tanh(x))
TL_FUNCTION(FastReciprocal, fast_reciprocal, reciprocal_approx(x), 1.0 / x)
#undef TL_FUNCTION

// The type in which two scalars are compared: their common type, or the wider one.
template <class A, class B>
using Wider = std::conditional_t<std::is_same<A, B>::value, A, std::common_type_t<FloatOf<A>, FloatOf<B>>>;

// The larger or smaller of two numbers; if one is NaN, the result is the other.
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
// -1, 0 or 1; NaN for NaN.
struct Sign {
  template <class T> TL_DEVICE T operator()(T x) const {
    const auto wide = convert<FloatOf<T>>(x);
    return convert<T>(wide > 0 ? FloatOf<T>(1) : wide < 0 ? static_cast<FloatOf<T>>(-1) : wide);
  }
};

// Functions of two arguments. For integers the float result is converted.
#define TL_FUNCTION_2(Name, name, for_float, for_double)                              \
  struct Name {                                                                       \
    TL_DEVICE float of(float x, float y) const { return for_float; }                  \
    TL_DEVICE double of(double x, double y) const { return for_double; }              \
    template <class A, class B> TL_DEVICE Wider<A, B> operator()(A a, B b) const {    \
      using T = Wider<A, B>;                                                          \
      using Wide = std::conditional_t<std::is_same<T, double>::value, double, float>; \
      return convert<T>(of(static_cast<Wide>(a), static_cast<Wide>(b)));              \
    }                                                                                 \
  };                                                                                  \
  template <class A, class B> TL_DEVICE auto name(A a, B b) { return apply(Name{}, a, b); }
TL_FUNCTION_2(Atan2, atan2, ::atan2f(x, y), ::atan2(x, y))
TL_FUNCTION_2(Fmod, fmod, ::fmodf(x, y), ::fmod(x, y))  // has the sign of x
// Has the sign of y, as Python's %. [TVM, tirx.floormod of floating-point numbers]
TL_FUNCTION_2(Mod, mod, x - ::floorf(x / y) * y, x - ::floor(x / y) * y)
TL_FUNCTION_2(CopySign, copysign, ::copysignf(x, y), ::copysign(x, y))
TL_FUNCTION_2(PowOfFloat, pow_of_float, ::powf(x, y), ::pow(x, y))
// 2^(y log2 x), for positive x: the absolute error of the logarithm is multiplied by y.
TL_FUNCTION_2(FastPow, fast_pow, exp2_approx(y* log2_approx(x)), ::pow(x, y))
// x times the approximate reciprocal of y: 2 ulp for |y| in [2^-126, 2^126].
TL_FUNCTION_2(FastDivide, fast_divide, x* reciprocal_approx(y), x / y)
// x / y with the same rounding as the operator, and cheaper if many x share a y.
TL_FUNCTION_2(Divide, divide, divide_rounded(x, y), x / y)
#undef TL_FUNCTION_2

// Integer powers are exact modulo the range of the type. A negative exponent gives 0, except for the bases 1 and -1.
struct Pow {
  template <class A, class B> TL_DEVICE Wider<A, B> operator()(A a, B b) const {
    using T = Wider<A, B>;
    if constexpr (!std::is_integral<T>::value) {
      return PowOfFloat{}(a, b);
    } else {
      using Bits = std::make_unsigned_t<T>;
      if (b < 0) return T(a) == 1 ? T(1) : T(a) == T(-1) ? T(b % 2 ? -1 : 1) : T(0);
      Bits result = 1, power = static_cast<Bits>(a);
      for (Bits left = static_cast<Bits>(b); left != 0; left >>= 1, power *= power)
        if (left & 1) result *= power;
      return static_cast<T>(result);
    }
  }
};

struct IsNan {
  template <class T> TL_DEVICE bool operator()(T x) const {
    const auto wide = convert<FloatOf<T>>(x);
    return wide != wide;
  }
};
struct IsInf {
  template <class T> TL_DEVICE bool operator()(T x) const {
    if constexpr (!is_float<T>)
      return false;
    else
      return convert<FloatOf<T>>(Abs{}(x)) == infinity<T>;
  }
};
struct IsFinite {
  template <class T> TL_DEVICE bool operator()(T x) const {
    if constexpr (!is_float<T>)
      return true;
    else
      return convert<FloatOf<T>>(Abs{}(x)) < infinity<T>;
  }
};
// Rounded once; 16-bit types are computed in float.
struct Fma {
  template <class A, class B, class C> TL_DEVICE Wider<Wider<A, B>, C> operator()(A a, B b, C c) const {
    using T = Wider<Wider<A, B>, C>;
    if constexpr (std::is_same<T, double>::value)
      return ::fma(double(a), double(b), double(c));
    else if constexpr (is_float<T>)
      return convert<T>(::fmaf(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
    else
      return T(a) * T(b) + T(c);
  }
};
template <class A, class B> TL_DEVICE auto max(A a, B b) { return apply(Max{}, a, b); }
template <class A, class B> TL_DEVICE auto min(A a, B b) { return apply(Min{}, a, b); }
template <class A, class B> TL_DEVICE auto pow(A a, B b) { return apply(Pow{}, a, b); }
template <class A> TL_DEVICE auto abs(A a) { return apply(Abs{}, a); }
template <class A> TL_DEVICE auto sign(A a) { return apply(Sign{}, a); }
template <class A> TL_DEVICE auto isnan(A a) { return apply(IsNan{}, a); }
template <class A> TL_DEVICE auto isinf(A a) { return apply(IsInf{}, a); }
template <class A> TL_DEVICE auto isfinite(A a) { return apply(IsFinite{}, a); }
// min(max(x, low), high): NaN becomes low.
template <class X, class Low, class High> TL_DEVICE auto clamp(X x, Low low, High high) {
  return tl::min(tl::max(x, low), high);
}
// a * b + c.
template <class A, class B, class C> TL_DEVICE auto fma(A a, B b, C c) { return apply(Fma{}, a, b, c); }

// Converts a number, or each element of a Vec.
template <class To, class X> TL_DEVICE auto cast(X x) { return convert<To>(value(x)); }

// Exact conversion of integers from -512 to 511 to floating point without the conversion unit: the integer is added to
// the bits of a number whose ulp is 1 (1.5 * 2^10 in half, 1.5 * 2^23 in float), and that number is subtracted. The
// conversion unit converts 16 per clock per SM, a quarter of the throughput of additions. [CUDA C++ Programming Guide,
// "Arithmetic Instructions"]
template <class To> struct SmallInteger {
  template <class X> TL_DEVICE To operator()(X x) const {
    constexpr float middle = 12582912.0f;  // 1.5 * 2^23
    return convert<To>(bit_cast<float>(bit_cast<int>(middle) + static_cast<int>(x)) - middle);
  }
};
template <> struct SmallInteger<half> {
  template <class X> TL_DEVICE half operator()(X x) const {
    constexpr int middle = 0x6600;  // 1.5 * 2^10
    const auto moved = bit_cast<half>(static_cast<uint16_t>(middle + static_cast<int>(x)));
    return moved - bit_cast<half>(static_cast<uint16_t>(middle));
  }
};
template <class To, class X> TL_DEVICE auto cast_exact(X x) {
  constexpr int n = packet_size<X>;
  if constexpr (std::is_same<To, half>::value && n > 0 && n % 2 == 0) {
    const auto v = value(x);
    Vec<uint32_t, n / 2> pairs;
    TL_UNROLL
    for (int i = 0; i < n; i += 2) {  // the lower half stays positive: no borrow from the upper half
      const uint32_t low = static_cast<uint32_t>(v.at[i]), high = static_cast<uint32_t>(v.at[i + 1]);
      pairs.at[i / 2] = subtract2(0x66006600 + low + (high << 16), 0x66006600, half());
    }
    return bit_cast<Vec<half, n>>(pairs);
  } else {
    return apply(SmallInteger<To>{}, x);
  }
}

// Reinterprets the bits as another type of the same size; for a Vec, those of each element.
template <class To> struct Reinterpret {
  template <class T> TL_DEVICE To operator()(T x) const { return bit_cast<To>(x); }
};
template <class To, class X> TL_DEVICE auto reinterpret(X x) { return apply(Reinterpret<To>{}, x); }

// a if the condition is true, else b. Both are evaluated.
template <class Condition, class A, class B> TL_DEVICE auto select(Condition condition, A a, B b) {
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

// a() if the condition, which is uniform over the elements, is true, else b(). Evaluates only that one, because the
// other may read out of bounds.
template <class A, class B> TL_DEVICE auto select_lazy(bool condition, A a, B b) {
  using X = std::decay_t<decltype(value(a()))>;
  using Y = std::decay_t<decltype(value(b()))>;
  constexpr int n = common_size<X, Y>;
  if constexpr (n == 0) {
    return condition ? value(a()) : value(b());
  } else {
    Vec<std::decay_t<decltype(element(value(a()), 0))>, n> result;
    const auto take = [&](const auto& x) {
      TL_UNROLL
      for (int i = 0; i < n; ++i) result.at[i] = element(x, i);
    };
    if (condition) {
      take(value(a()));
    } else {
      take(value(b()));
    }
    return result;
  }
}

}  // namespace tl
