// Small dense matrix multiplications: the arithmetic of MMA instructions.
// Accumulates in ascending k, in float, by fused multiply-adds if the CPU has them. The order and rounding of tensor
// cores differ: only integer-valued data gives equal results.
#pragma once
#include <cstdint>

namespace tile2cu::engine {

// c[m][n] += a[m][k] * b[k][n], all row-major. Instantiated for the shapes of the instructions.
template <int m, int n, int k> void multiply_add(float* c, const float* a, const float* b);

// Whether any of them is no finite number.
bool has_special(const float* values, int count);

// 16-bit floating-point bits to float; type is TL_ENGINE_HALF or TL_ENGINE_BFLOAT16. `count` is a multiple of 8.
void widen(float* to, const std::uint16_t* from, int count, int type);

// Converts OCP 8-bit floating point to float; `type` is TL_ENGINE_E4M3 or TL_ENGINE_E5M2.
float float8_value(std::uint8_t bits, int type);

}  // namespace tile2cu::engine
