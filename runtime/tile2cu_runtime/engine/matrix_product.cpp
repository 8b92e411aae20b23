#include "matrix_product.h"

#include <cmath>
#include <cstring>
#include <limits>

#include <tl/host/engine.h>
#include <tl/host/numeric.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tile2cu::engine {
namespace {

typedef float Float8 __attribute__((vector_size(32), aligned(4), may_alias));

Float8& eight(float* from) { return *reinterpret_cast<Float8*>(from); }
const Float8& eight(const float* from) { return *reinterpret_cast<const Float8*>(from); }

// Eight vector accumulators: enough independent FMA chains to hide their latency.
template <int m, int n, int k>
__attribute__((always_inline)) inline void multiply_add_body(float* c, const float* a, const float* b) {
  constexpr int vectors = n < 64 ? n / 8 : 8, rows = 8 / vectors;
  static_assert(n % (vectors * 8) == 0 && m % rows == 0, "whole blocks");
  for (int column = 0; column < n; column += vectors * 8) {
    for (int row = 0; row < m; row += rows) {
      Float8 sum[rows][vectors];
      for (int r = 0; r < rows; ++r) {
        for (int v = 0; v < vectors; ++v) sum[r][v] = eight(c + (row + r) * n + column + v * 8);
      }
      for (int inner = 0; inner < k; ++inner) {
        for (int r = 0; r < rows; ++r) {
          const float scalar = a[(row + r) * k + inner];
          const Float8 left = {scalar, scalar, scalar, scalar, scalar, scalar, scalar, scalar};
          for (int v = 0; v < vectors; ++v) sum[r][v] += left * eight(b + inner * n + column + v * 8);
        }
      }
      for (int r = 0; r < rows; ++r) {
        for (int v = 0; v < vectors; ++v) eight(c + (row + r) * n + column + v * 8) = sum[r][v];
      }
    }
  }
}

#if defined(__x86_64__)
// Run-time dispatch: distributions compile for baseline x86-64.
bool has_avx2() {
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  return has;
}

template <int m, int n, int k>
__attribute__((target("avx2,fma"))) void multiply_add_avx2(float* c, const float* a, const float* b) {
  multiply_add_body<m, n, k>(c, a, b);
}

__attribute__((target("avx2,f16c"))) void widen_half_avx2(float* to, const std::uint16_t* from, int count) {
  for (int index = 0; index < count; index += 8) {
    __m128i eight;
    std::memcpy(&eight, from + index, sizeof eight);
    const __m256 wide = _mm256_cvtph_ps(eight);
    std::memcpy(to + index, &wide, sizeof wide);
  }
}
#endif

}  // namespace

template <int m, int n, int k> void multiply_add(float* c, const float* a, const float* b) {
#if defined(__x86_64__)
  if (has_avx2()) return multiply_add_avx2<m, n, k>(c, a, b);
#endif
  multiply_add_body<m, n, k>(c, a, b);
}

template void multiply_add<16, 8, 8>(float*, const float*, const float*);
template void multiply_add<16, 8, 16>(float*, const float*, const float*);
template void multiply_add<16, 8, 32>(float*, const float*, const float*);
template void multiply_add<16, 8, 64>(float*, const float*, const float*);
template void multiply_add<64, 8, 16>(float*, const float*, const float*);
template void multiply_add<64, 64, 16>(float*, const float*, const float*);
template void multiply_add<64, 128, 16>(float*, const float*, const float*);
template void multiply_add<64, 256, 16>(float*, const float*, const float*);

bool has_special(const float* values, int count) {
  int index = 0;
  Float8 sum{};
  const Float8 zero{};
  for (; index + 8 <= count; index += 8) sum += eight(values + index) * zero;  // NaN from then on
  float all = 0;
  for (int i = 0; i < 8; ++i) all += sum[i];
  for (; index < count; ++index) all += values[index] * 0;
  return all != all;
}

void widen(float* to, const std::uint16_t* from, int count, int type) {
  if (type == TL_ENGINE_BFLOAT16) {
    for (int index = 0; index < count; ++index) to[index] = tl::host::bfloat16_to_float(from[index]);
    return;
  }
#if defined(__x86_64__)
  if (has_avx2()) return widen_half_avx2(to, from, count);
#endif
  for (int index = 0; index < count; ++index) to[index] = tl::host::half_to_float(from[index]);
}

// Sign, exponent, mantissa.
float float8_value(std::uint8_t bits, int type) {
  if (type == TL_ENGINE_E5M2) return tl::host::half_to_float(std::uint16_t(bits << 8));
  const int exponent = bits >> 3 & 15, digits = bits & 7;
  const float size = (bits & 0x7f) == 0x7f ? std::numeric_limits<float>::quiet_NaN()
                     : exponent == 0       ? std::ldexp(float(digits), -9)
                                           : std::ldexp(float(8 + digits), exponent - 10);
  return bits & 0x80 ? -size : size;
}

}  // namespace tile2cu::engine
