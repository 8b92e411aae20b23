// Small dense products, the arithmetic of the tensor-core instructions.
//
// Products are added to the accumulator one after another in ascending k, each step a fused multiply-add in float where
// the CPU has one. Tensor cores sum in another order and with other rounding: only integer-valued data compares equal.
#pragma once
#include <cstdint>

namespace tile2cu::engine {

// c[m][n] += a[m][k] * b[k][n], all row-major. Instantiated for the shapes that instructions have.
template <int m, int n, int k> void multiply_add(float* c, const float* a, const float* b);

// Whether any of them is no finite number.
bool has_special(const float* values, int count);

// 16-bit floating-point bits to float; type is TL_ENGINE_HALF or TL_ENGINE_BFLOAT16. `count` is a multiple of 8.
void widen(float* to, const std::uint16_t* from, int count, int type);

// 8-bit floating point of the OCP specification; type is TL_ENGINE_E4M3 or TL_ENGINE_E5M2.
float float8_value(std::uint8_t bits, int type);

}  // namespace tile2cu::engine
