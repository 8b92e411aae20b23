// Mathematical functions in plain C++, instead of AMD's device library: kernels link no library. float functions are
// computed in double, which CDNA executes at half the rate of float or better, and rounded once: at most 1 ulp unless
// stated otherwise. The file also compiles for a CPU, where the tests measure the errors.
#pragma once
#include <cstdint>

#ifndef TL_LIBRARY
#define TL_LIBRARY static __device__ inline
#endif

namespace tl {
namespace library {

constexpr double infinite = __builtin_huge_val();
constexpr double ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;  // sum: ln 2 to 85 bits
constexpr double half_pi = 1.57079632679489655800, half_pi_low = 6.12323399573676603587e-17;

// e^x; 2 ulp. x = n ln 2 + r with |r| <= ln 2 / 2, and the Taylor series of e^r.
TL_LIBRARY double exponential(double x) {
  if (x != x) return x;
  if (x > 709.79) return infinite;
  if (x < -745.2) return 0;
  const double n = __builtin_rint(x * 1.44269504088896338700);
  const double r = __builtin_fma(-n, ln2_low, __builtin_fma(-n, ln2_high, x));
  double sum = 1.0 / 87178291200.0;
  double factorial = 6227020800.0;  // of i
  for (int i = 13; i > 0; --i) {
    sum = __builtin_fma(sum, r, 1.0 / factorial);
    factorial /= i;
  }
  return __builtin_ldexp(__builtin_fma(sum, r, 1.0), static_cast<int>(n));
}

// ln x; 4 ulp. x = m 2^e with m in [sqrt(1/2), sqrt(2)), and the series of ln m = 2 artanh((m - 1) / (m + 1)).
TL_LIBRARY double logarithm(double x) {
  if (x == 0) return -infinite;
  if (!(x > 0) || x == infinite) return x < 0 ? x - x + (infinite - infinite) : x;
  int exponent = 0;
  if (x < 0x1p-1022) x *= 0x1p54, exponent = -54;
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  // Moves the exponent so that m is in [sqrt(1/2), sqrt(2)).
  const int64_t shifted = static_cast<int64_t>(bits) - 0x3fe6a09e667f3bcd;
  exponent += static_cast<int>(shifted >> 52);
  bits -= static_cast<uint64_t>(shifted >> 52) << 52;
  double m;
  __builtin_memcpy(&m, &bits, sizeof m);
  const double s = (m - 1) / (m + 1), square = s * s;
  double sum = 0;
  for (int i = 25; i >= 3; i -= 2) sum = __builtin_fma(sum, square, 1.0 / i);
  const double small = __builtin_fma(2 * s * square, sum, exponent * ln2_low);
  return __builtin_fma(exponent, ln2_high, 2 * s + small);
}

// ln(1 + x): the factor x / (sum - 1) corrects the rounding error of 1 + x.
TL_LIBRARY double logarithm_of_one_more(double x) {
  const double sum = 1 + x;
  return sum == 1 || sum == infinite ? x : logarithm(sum) * (x / (sum - 1));
}

TL_LIBRARY double tangent_hyperbolic(double x) {
  const double size = __builtin_fabs(x);
  if (size < 0x1p-12) return x - x * x * x * (1.0 / 3);
  const double result = 1 - 2 / (exponential(2 * size) + 1);
  return __builtin_copysign(result, x);
}
TL_LIBRARY double sine_hyperbolic(double x) {
  if (__builtin_fabs(x) < 0x1p-12) return x + x * x * x * (1.0 / 6);
  return 0.5 * (exponential(x) - exponential(-x));
}

// erf x; absolute error 3e-8, relative error 2^-24 for small |x|. |x| < 1: the Taylor series; otherwise 1 - erfc by the
// approximation in t = 1 / (1 + |x| / 2) of Numerical Recipes, "Incomplete Gamma Function, Error Function".
TL_LIBRARY double error_function(double x) {
  const double size = __builtin_fabs(x), square = x * x;
  if (size < 1) {
    double sum = 0, factorial = 1307674368000.0;  // of i
    for (int i = 15; i >= 0; --i) {
      sum = __builtin_fma(sum, -square, 1.0 / (factorial * (2 * i + 1)));
      if (i > 0) factorial /= i;
    }
    return x * sum * 1.12837916709551257390;  // 2 / sqrt(pi)
  }
  const double t = 1 / (1 + 0.5 * size);
  constexpr double p[] = {0.17087277,  -0.82215223, 1.48851587, -1.13520398, 0.27886807,
                          -0.18628806, 0.09678418,  0.37409196, 1.00002368,  -1.26551223};
  double sum = 0;
  for (double factor : p) sum = __builtin_fma(sum, t, factor);
  return __builtin_copysign(1 - t * exponential(sum - square), x);
}

// atan2(y, x), in (-pi, pi]. Tangents above tan(pi / 8) are reduced first, so that 15 terms of the series suffice.
TL_LIBRARY double angle(double y, double x) {
  const double a = __builtin_fabs(x), b = __builtin_fabs(y);
  if (x != x || y != y) return x + y;
  double low = a < b ? a : b, high = a < b ? b : a, start = 0;
  if (high == infinite) low = low == infinite, high = 1;
  if (high == 0) high = 1;
  double tangent = low / high;
  if (tangent > 0.41421356237309503) start = 0.5 * half_pi, tangent = (low - high) / (low + high);
  const double square = tangent * tangent;
  double sum = 0;
  for (int i = 29; i >= 1; i -= 2) sum = __builtin_fma(sum, -square, 1.0 / i);
  double result = start + tangent * sum;
  if (a < b) result = half_pi - result;
  if (__builtin_signbit(x)) result = 2 * half_pi - result;
  return __builtin_copysign(result, y);
}

// sin (`quarter` 0) or cos (`quarter` 1), for |x| <= 2^30; beyond that the result is only known to be in [-1, 1].
TL_LIBRARY double circular(double x, int quarter) {
  if (__builtin_fabs(x) == infinite) return infinite - infinite;
  const double n = __builtin_rint(x * 0.63661977236758138243);
  double r = __builtin_fma(-n, half_pi_low, __builtin_fma(-n, half_pi, x));
  if (__builtin_fabs(r) > 1) r = 0;  // |x| is too large for the reduction
  const int quadrant = static_cast<int>(n - 4 * __builtin_floor(n * 0.25)) + quarter;
  const double square = r * r;
  double even = 0, odd = 0;
  for (int i = 16; i >= 2; i -= 2) {  // Horner's scheme: cos r = 1 - r^2 / (1 2) (1 - r^2 / (3 4) (...))
    even = 1 - square * (even == 0 ? 1 : even) / (i * (i - 1));
    odd = 1 - square * (odd == 0 ? 1 : odd) / (i * (i + 1));
  }
  const double result = quadrant & 1 ? even : r * odd;
  return quadrant & 2 ? -result : result;
}

// fmod: the exact remainder, with the sign of x; the quotient is computed 28 bits at a time.
TL_LIBRARY float remainder(float x, float y) {
  const double divisor = __builtin_fabs(static_cast<double>(y));
  double rest = __builtin_fabs(static_cast<double>(x));
  if (x != x || y != y || rest == infinite || divisor == 0) return __builtin_nanf("");
  if (divisor == infinite) return x;
  while (rest >= divisor) {
    double step = divisor;
    while (rest / step >= 0x1p28) step *= 0x1p27;
    rest = __builtin_fma(-__builtin_trunc(rest / step), step, rest);
    if (rest < 0) rest += step;  // the quotient was rounded up
  }
  return __builtin_copysignf(static_cast<float>(rest), x);
}

TL_LIBRARY float power(float x, float y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return __builtin_nanf("");
  const double size = __builtin_fabs(static_cast<double>(x)), exponent = y;
  const bool is_whole = __builtin_trunc(exponent) == exponent;
  const bool is_odd = is_whole && __builtin_trunc(exponent * 0.5) != exponent * 0.5;
  if (x < 0 && !is_whole && size != infinite) return __builtin_nanf("");
  const double result = size == 1 ? 1 : exponential(exponent * logarithm(size));
  return static_cast<float>(is_odd ? __builtin_copysign(result, static_cast<double>(x)) : result);
}

}  // namespace library
}  // namespace tl
