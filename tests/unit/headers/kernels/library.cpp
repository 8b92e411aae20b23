// Prints the largest error of each function of headers/tl/hip/library.h, in units of the last place of float, over many
// arguments of all sizes, against the C library in long double.
#include <cmath>
#include <cstdio>
#include <random>

#define TL_LIBRARY static inline
#define __device__
#include <tl/hip/library.h>

namespace {

bool first = true;

double ulps(float got, long double want, int digits) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || rounded == 0) return got == rounded ? 0 : std::fabs(got - rounded) <= 1.5e-45f ? 1 : 1e9;
  int exponent;
  std::frexp(rounded, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent, -125) - digits);
  return static_cast<double>(std::fabs(got - want) / unit);
}

template <class F, class G> void measure(const char* name, double low, double high, const F& ours, const G& exact) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> place(0, 1);
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    // Half of the arguments evenly over the range, half of them evenly over the exponents.
    const double size = i % 2 ? low + (high - low) * place(random) : std::exp2(-140 + 268 * place(random));
    const double x = i % 4 == 0 ? -size : size;
    if (x < low || x > high) continue;
    const auto argument = static_cast<float>(x);
    worst = std::fmax(worst, ulps(static_cast<float>(ours(argument)), exact(static_cast<long double>(argument)), 24));
  }
  std::printf("%s\"%s\":%.3f", first ? "{" : ",", name, worst);
  first = false;
}

}  // namespace

int main() {
  namespace m = tl::library;
  measure("exp", -104, 89, [](float x) { return m::exponential(x); }, [](long double x) { return expl(x); });
  measure(
      "exp10", -45, 39, [](float x) { return m::exponential(x * 2.30258509299404568402); },
      [](long double x) { return exp10l(x); });
  measure("log", 0, 3e38, [](float x) { return m::logarithm(x); }, [](long double x) { return logl(x); });
  measure(
      "log1p", -1, 3e38, [](float x) { return m::logarithm_of_one_more(x); }, [](long double x) { return log1pl(x); });
  measure("tanh", -20, 20, [](float x) { return m::tangent_hyperbolic(x); }, [](long double x) { return tanhl(x); });
  measure("sinh", -89, 89, [](float x) { return m::sine_hyperbolic(x); }, [](long double x) { return sinhl(x); });
  measure("erf", -6, 6, [](float x) { return m::error_function(x); }, [](long double x) { return erfl(x); });
  measure("sin", -1e9, 1e9, [](float x) { return m::circular(x, 0); }, [](long double x) { return sinl(x); });
  measure("cos", -1e9, 1e9, [](float x) { return m::circular(x, 1); }, [](long double x) { return cosl(x); });
  measure("atan", -3e38, 3e38, [](float x) { return m::angle(x, 1); }, [](long double x) { return atanl(x); });
  measure(
      "atan2", -3e38, 3e38, [](float x) { return m::angle(x, -0.7f); }, [](long double x) { return atan2l(x, -0.7f); });
  measure(
      "fmod", -3e38, 3e38, [](float x) { return m::remainder(x, 0.37f); },
      [](long double x) { return fmodl(x, 0.37f); });
  measure("pow", 0, 3e38, [](float x) { return m::power(x, 0.37f); }, [](long double x) { return powl(x, 0.37f); });
  measure(
      "pow of a base", -200, 200, [](float x) { return m::power(1.7f, x); },
      [](long double x) { return powl(1.7f, x); });
  const float bases[] = {0.0f, -0.0f, 1, -1, -2, 0.5f, INFINITY, -INFINITY, NAN},
              powers[] = {0, 1, -1, 2, -3, 0.5f, -0.5f, INFINITY, -INFINITY, NAN};
  int wrong = 0;
  for (float x : bases)
    for (float y : powers) {
      const float got = m::power(x, y), want = std::pow(x, y);
      if (!(std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want))) ++wrong;
    }
  std::printf(",\"special powers that are wrong\":%d}\n", wrong);
}
