// C += A B on the tensor cores: mma.sync on the registers of warps.
#pragma once
#include "mma_operands.h"

namespace tl {

// An additional argument of tl::gemm: C = A B instead of C += A B.
enum Overwrite { overwrite };

// ---- one instruction ---------------------------------------------------------------------------------------------

// Targets without an 8-bit floating-point MMA convert to half, which represents all values exactly. Four consecutive k
// of a lane become two pairs, one per MMA. This permutes k in the same way for A and B.
template <class T> TL_DEVICE void mma_float8(float* d, const uint32_t* a, const uint32_t* b) {
  if constexpr (T::has_products) {
    Float8Instructions::mma_m16n8k32(d, a, b, T::is_e4m3);
  } else {
    TL_UNROLL
    for (int i = 0; i < 2; ++i) {
      uint32_t a_halves[4], b_halves[2];
      T::halves(a[2 * i], a_halves[0], a_halves[2]);
      T::halves(a[2 * i + 1], a_halves[1], a_halves[3]);
      T::halves(b[i], b_halves[0], b_halves[1]);
      mma_m16n8k16(d, a_halves, b_halves, half());
    }
  }
}

template <class T> TL_DEVICE void mma(float* d, const uint32_t* a, const uint32_t* b) {
  static_assert(is_float<T> && sizeof(T) <= 4, "float accumulates half, bfloat16, float or 8-bit floating point");
  if constexpr (sizeof(T) == 4)
    mma_m16n8k8_tf32(d, a, b);
  else if constexpr (is_float8<T>)
    mma_float8<T>(d, a, b);
  else
    mma_m16n8k16(d, a, b, T());
}
// The k4 step of double is two m8n8k4 MMAs: registers 2h and 2h + 1 of A are the two words of the element in row half
// h.
template <class T> TL_DEVICE void mma(double* d, const uint32_t* a, const uint32_t* b) {
  static_assert(std::is_same<T, double>::value, "double accumulates double");
  const auto element = [](const uint32_t* words) {
    return bit_cast<double>(words[0] | static_cast<uint64_t>(words[1]) << 32);
  };
  TL_UNROLL
  for (int h = 0; h < 2; ++h) mma_m8n8k4_double(d + 2 * h, element(a + 2 * h), element(b));
}
template <class T> TL_DEVICE void mma(half* d, const uint32_t* a, const uint32_t* b) {
  static_assert(std::is_same<T, half>::value, "half accumulates half");
  uint32_t packed[2] = {pack_bits(d[0], d[1]), pack_bits(d[2], d[3])};
  mma_m16n8k16(packed, a, b, T());
  TL_UNROLL
  for (int i = 0; i < 4; ++i) d[i] = bit_cast<half>(static_cast<uint16_t>(packed[i / 2] >> i % 2 * 16));
}
// The elements at even or odd positions of eight 4-bit integers, widened to 8 bits.
template <class T> TL_DEVICE uint32_t widened(uint32_t word, int odd) {
  const uint32_t digits = word >> 4 * odd & 0x0f0f0f0f;
  if (!T::is_signed) return digits;
  return (((digits ^ 0x08080808) | 0x80808080) - 0x08080808) ^ 0x80808080;  // each byte minus 8, without a borrow
}
// Targets without a 4-bit MMA widen to 8-bit integers. Eight consecutive k of a lane become four per MMA, for two MMAs.
// This permutes k in the same way for A and B.
template <class T> TL_DEVICE void mma_int4(int32_t* d, const uint32_t* a, const uint32_t* b) {
  if constexpr (Int4Instructions::exist) {
    Int4Instructions::mma_m16n8k64(d, a, b, T::is_signed);
  } else {
    TL_UNROLL
    for (int odd = 0; odd < 2; ++odd) {
      const uint32_t a_bytes[4] = {widened<T>(a[0], odd), widened<T>(a[1], odd), widened<T>(a[2], odd),
                                   widened<T>(a[3], odd)};
      const uint32_t b_bytes[2] = {widened<T>(b[0], odd), widened<T>(b[1], odd)};
      mma_m16n8k32_int8(d, a_bytes, b_bytes);
    }
  }
}
template <class T> TL_DEVICE void mma(int32_t* d, const uint32_t* a, const uint32_t* b) {
  static_assert(std::is_same<T, int8_t>::value || is_int4<T>, "int32 accumulates 8-bit and 4-bit integers");
  if constexpr (is_int4<T>)
    mma_int4<T>(d, a, b);
  else
    mma_m16n8k32_int8(d, a, b);
}

// ---- the tile ----------------------------------------------------------------------------------------------------

// The operands of one warp for one k step.
template <int m_tiles, int n_tiles> struct MmaStep {
  uint32_t a[m_tiles][4];
  uint32_t b[n_tiles + n_tiles % 2][2];

  template <class A, class B> TL_DEVICE void load(const A& from_a, const B& from_b, int row, int col, int k) {
    TL_UNROLL
    for (int m = 0; m < m_tiles; ++m) from_a.load(a[m], row, m, k);
    TL_UNROLL
    for (int n = 0; n + 1 < n_tiles; n += 2) {
      uint32_t pair[4];
      from_b.load_pair(pair, k, col, n);
      TL_UNROLL
      for (int i = 0; i < 4; ++i) b[n + i / 2][i % 2] = pair[i];
    }
    if constexpr (n_tiles % 2 == 1) from_b.load_one(b[n_tiles - 1], k, col, n_tiles - 1);
  }
};

// C += A B on the tensor cores.
// a: a shared tile M x K, tl::transposed of a shared tile K x M, or a fragment with layout MmaOperandA (or an
// accumulator's layout with all warps along M).
// b: a shared tile K x N, tl::transposed of a shared tile N x K, a fragment of 16-bit elements with layout MmaOperandB,
// or tl::transposed of one with layout MmaTransposedOperandB.
// A shared tile may be a subtile (tl::rows, tl::cols). The operands of the next k step are loaded before the MMAs of
// the current one are issued. Called by: every warp of C's layout. Reads shared memory without a barrier.
template <class A, class B, class T, int M, int N, class W>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<T, MmaAccumulator<M, N, W>>& C) {
  using Layout = MmaAccumulator<M, N, W>;
  const auto from_a = operand_a(a);
  using FromA = std::decay_t<decltype(from_a)>;
  const auto from_b = operand_b<FromA::order>(b);
  using FromB = std::decay_t<decltype(from_b)>;
  using Element = typename FromA::type;
  static_assert(FromA::rows == M, "A has as many rows as C");
  static_assert(FromB::cols == N, "B has as many columns as C");
  static_assert(FromA::cols == FromB::rows, "A has as many columns as B has rows");
  static_assert(FromA::template fits<W>, "A in registers has the layout tl::MmaOperandA with the warps of C");
  static_assert(FromB::template fits<W>, "B in registers has the layout tl::MmaOperandB with the warps of C");
  static_assert(std::is_same<Element, typename FromB::type>::value, "A and B have the same element type");
  constexpr int m_tiles = Layout::m_tiles, n_tiles = Layout::n_tiles, steps = FromA::cols / mma_k<Element>;
  static_assert(FromA::cols % mma_k<Element> == 0, "K is a multiple of 32 bytes");

  TL_OPERAND_READS(Element);
  const int row = Layout::first_row(), col = Layout::first_col();
  MmaStep<m_tiles, n_tiles> step[2];
  step[0].load(from_a, from_b, row, col, 0);
  TL_UNROLL
  for (int k = 0; k < steps; ++k) {
    if (k + 1 < steps) step[(k + 1) % 2].load(from_a, from_b, row, col, (k + 1) * mma_k<Element>);
    TL_UNROLL
    for (int m = 0; m < m_tiles; ++m) TL_UNROLL
    for (int n = 0; n < n_tiles; ++n) mma<Element>(&C.reg[(m * n_tiles + n) * 4], step[k % 2].a[m], step[k % 2].b[n]);
  }
}
template <class A, class B, class T, int M, int N, class W>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<T, MmaAccumulator<M, N, W>>& C, Overwrite) {
  clear(C);
  gemm(a, b, C);
}

}  // namespace tl
