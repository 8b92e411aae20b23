// C += A B on the tensor cores, by mma.sync on the registers of warps.
#pragma once
#include "fragment.h"
#include "mma_accumulator.h"
#include "shared_tile.h"

namespace tl {

// A further argument of tl::gemm: C = A B instead of C += A B.
enum Overwrite { overwrite };

// ---- one instruction ---------------------------------------------------------------------------------------------

// 32 bytes of K are one step of every mma here: k16 of 16-bit elements, k32 of 8-bit ones, k8 of float (as tf32).
template <class T> constexpr int mma_k = 32 / static_cast<int>(sizeof(T));

// Machines without 8-bit floating point multiply halves, which hold its values exactly. A lane's four neighbours along
// K become two pairs of two instructions: k is taken in another order, the same for A and B.
template <class T> TL_DEVICE void mma_float8(float* d, const uint32_t* a, const uint32_t* b) {
  if constexpr (Float8Instructions::exist) {
    Float8Instructions::mma_m16n8k32(d, a, b, T::is_e4m3);
  } else {
    const auto low = [](uint32_t word) { return T::halves(static_cast<uint16_t>(word)); };
    const auto high = [](uint32_t word) { return T::halves(static_cast<uint16_t>(word >> 16)); };
    TL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const uint32_t a_halves[4] = {low(a[2 * i]), low(a[2 * i + 1]), high(a[2 * i]), high(a[2 * i + 1])};
      const uint32_t b_halves[2] = {low(b[i]), high(b[i])};
      mma_m16n8k16(d, a_halves, b_halves, half());
    }
  }
}

template <class T> TL_DEVICE void mma(float* d, const uint32_t* a, const uint32_t* b) {
  static_assert(is_float<T> && sizeof(T) <= 4, "float accumulates half, bfloat16, float or 8-bit floating point");
  if constexpr (std::is_same<T, float>::value)
    mma_m16n8k8_tf32(d, a, b);
  else if constexpr (is_float8<T>)
    mma_float8<T>(d, a, b);
  else
    mma_m16n8k16(d, a, b, T());
}
template <class T> TL_DEVICE void mma(half* d, const uint32_t* a, const uint32_t* b) {
  static_assert(std::is_same<T, half>::value, "half accumulates half");
  uint32_t packed[2] = {pack_bits(d[0], d[1]), pack_bits(d[2], d[3])};
  mma_m16n8k16(packed, a, b, T());
  TL_UNROLL
  for (int i = 0; i < 4; ++i) d[i] = bit_cast<half>(static_cast<uint16_t>(packed[i / 2] >> i % 2 * 16));
}
template <class T> TL_DEVICE void mma(int32_t* d, const uint32_t* a, const uint32_t* b) {
  static_assert(std::is_same<T, int8_t>::value, "int32 accumulates int8");
  mma_m16n8k32_int8(d, a, b);
}

// ---- operands of one step of K, for one warp ---------------------------------------------------------------------
// `row` or `col` is where the warp's part starts, `m` counts its tiles of 16 rows, `k` is where the step starts.

// An operand in shared memory: every warp can read all of it.
struct InSharedMemory {
  template <class Warps> static constexpr bool fits = true;
};
// A in shared memory, M x K as it lies: 16 rows x 32 bytes are the four matrices of one ldmatrix.
template <class Tile> struct SharedA : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::rows, cols = Tile::cols;
  const Tile& tile;
  TL_DEVICE void load(uint32_t (&a)[4], int row, int m, int k) const {
    ldmatrix_x4(a, tile.at(row + 16 * m + lane() % 16, k + lane() / 16 * (mma_k<type> / 2)));
  }
};
// A stored as K x M: the same matrices, each transposed by the load.
template <class Tile> struct SharedTransposedA : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::cols, cols = Tile::rows;
  static_assert(sizeof(type) == 2, "ldmatrix transposes 16-bit elements only: store this operand with K contiguous");
  const Tile& tile;
  TL_DEVICE void load(uint32_t (&a)[4], int row, int m, int k) const {
    ldmatrix_x4_trans(a, tile.at(k + lane() / 16 * 8 + lane() % 8, row + 16 * m + lane() / 8 % 2 * 8));
  }
};
// A in registers, in the layout of accumulators: two neighbouring m16n8 tiles are one m16k16 operand.
template <class T, class Layout> struct RegisterA {
  using type = T;
  static constexpr int rows = Layout::M, cols = Layout::N;
  static_assert(is_small_float<T>, "an operand in registers is half or bfloat16");
  template <class W> static constexpr bool fits = std::is_same<Layout, MmaOperandA<rows, cols, W>>::value;
  const Fragment<T, Layout>& fragment;
  TL_DEVICE void load(uint32_t (&a)[4], int, int m, int k) const {
    const T* const reg = fragment.reg + (m * Layout::n_tiles + k / 8) * 4;
    TL_UNROLL
    for (int i = 0; i < 4; ++i) a[i] = pack_bits(reg[2 * i], reg[2 * i + 1]);
  }
};

// B in shared memory, K x N as it lies: 16 of K x 16 columns, two instructions' worth, transposed by the load.
template <class Tile> struct SharedB : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::rows, cols = Tile::cols;
  static_assert(sizeof(type) == 2, "ldmatrix transposes 16-bit elements only: store this operand with K contiguous");
  const Tile& tile;
  TL_DEVICE void load_pair(uint32_t (&b)[4], int k, int col, int n) const {
    ldmatrix_x4_trans(b, tile.at(k + lane() % 16, col + 8 * n + lane() / 16 * 8));
  }
  TL_DEVICE void load_one(uint32_t (&b)[2], int k, int col, int n) const {
    ldmatrix_x2_trans(b, tile.at(k + lane() % 16, col + 8 * n));
  }
};
// B stored as N x K.
template <class Tile> struct SharedTransposedB : InSharedMemory {
  using type = typename Tile::type;
  static constexpr int rows = Tile::cols, cols = Tile::rows, half_step = mma_k<type> / 2;
  const Tile& tile;
  TL_DEVICE void load_pair(uint32_t (&b)[4], int k, int col, int n) const {
    ldmatrix_x4(b, tile.at(col + 8 * n + lane() / 16 * 8 + lane() % 8, k + lane() / 8 % 2 * half_step));
  }
  TL_DEVICE void load_one(uint32_t (&b)[2], int k, int col, int n) const {
    ldmatrix_x2(b, tile.at(col + 8 * n + lane() % 8, k + lane() / 8 % 2 * half_step));
  }
};
// B in registers.
template <class T, class Registers, class Layout> struct RegisterB {
  using type = T;
  static constexpr int rows = Registers::k_tiles * 8, cols = Registers::along_n::extent;
  static_assert(is_small_float<T>, "an operand in registers is half or bfloat16");
  template <class W> static constexpr bool fits = std::is_same<typename Registers::Warps, W>::value;
  const Fragment<T, Layout>& fragment;
  TL_DEVICE void load_one(uint32_t (&b)[2], int k, int, int n) const {
    const T* const reg = fragment.reg + (n * Registers::k_tiles + k / 8) * 2;
    TL_UNROLL
    for (int i = 0; i < 2; ++i) b[i] = pack_bits(reg[2 * i], reg[2 * i + 1]);
  }
  TL_DEVICE void load_pair(uint32_t (&b)[4], int k, int col, int n) const {
    uint32_t one[2][2];
    load_one(one[0], k, col, n);
    load_one(one[1], k, col, n + 1);
    TL_UNROLL
    for (int i = 0; i < 4; ++i) b[i] = one[i / 2][i % 2];
  }
};

template <class T, int rows, int cols, class S> TL_DEVICE auto operand_a(const SharedTile<T, rows, cols, S>& tile) {
  return SharedA<SharedTile<T, rows, cols, S>>{{}, tile};
}
template <class Tile> TL_DEVICE auto operand_a(const Transposed<Tile>& a) {
  return SharedTransposedA<Tile>{{}, a.tile};
}
template <class T, class Layout> TL_DEVICE auto operand_a(const Fragment<T, Layout>& a) {
  return RegisterA<T, Layout>{a};
}
template <class Tile, int rows, int cols> TL_DEVICE auto operand_a(const SubTile<Tile, rows, cols>& tile) {
  return SharedA<SubTile<Tile, rows, cols>>{{}, tile};
}
template <class T, int rows, int cols, class S> TL_DEVICE auto operand_b(const SharedTile<T, rows, cols, S>& tile) {
  return SharedB<SharedTile<T, rows, cols, S>>{{}, tile};
}
template <class Tile> TL_DEVICE auto operand_b(const Transposed<Tile>& b) {
  return SharedTransposedB<Tile>{{}, b.tile};
}
template <class Tile, int rows, int cols> TL_DEVICE auto operand_b(const SubTile<Tile, rows, cols>& tile) {
  return SharedB<SubTile<Tile, rows, cols>>{{}, tile};
}
template <class T, int K, int N, class W> TL_DEVICE auto operand_b(const Fragment<T, MmaOperandB<K, N, W>>& b) {
  return RegisterB<T, MmaRegistersB<K, N, W>, MmaOperandB<K, N, W>>{b};
}
template <class T, int N, int K, class W>
TL_DEVICE auto operand_b(const Transposed<Fragment<T, MmaTransposedOperandB<N, K, W>>>& b) {
  return RegisterB<T, MmaRegistersB<K, N, W>, MmaTransposedOperandB<N, K, W>>{b.tile};
}

// ---- the tile ----------------------------------------------------------------------------------------------------

// All operands of one warp for one step of K.
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

// C += A B. a: a shared tile M x K, tl::transposed of one stored K x M, or a fragment with MmaOperandA (or an
// accumulator's layout with all warps along M); b: a shared tile K x N, or tl::transposed of one stored N x K, or a
// fragment with MmaOperandB, or tl::transposed of one with MmaTransposedOperandB. A shared tile may be tl::rows or
// tl::cols of one. The operands of the next step of K are loaded before the products of this one are started.
// Who: every warp of C's layout. Reads shared memory without a barrier.
template <class A, class B, class T, int M, int N, class W>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<T, MmaAccumulator<M, N, W>>& C) {
  using Layout = MmaAccumulator<M, N, W>;
  const auto from_a = operand_a(a);
  const auto from_b = operand_b(b);
  using FromA = std::decay_t<decltype(from_a)>;
  using FromB = std::decay_t<decltype(from_b)>;
  using Element = typename FromA::type;
  static_assert(FromA::rows == M, "A has as many rows as C");
  static_assert(FromB::cols == N, "B has as many columns as C");
  static_assert(FromA::cols == FromB::rows, "A has as many columns as B has rows");
  static_assert(FromA::template fits<W>, "A is in registers: its layout is tl::MmaOperandA with the warps of C");
  static_assert(FromB::template fits<W>, "B is in registers: its layout is tl::MmaOperandB with the warps of C");
  static_assert(std::is_same<Element, typename FromB::type>::value, "A and B have the same element type");
  constexpr int m_tiles = Layout::m_tiles, n_tiles = Layout::n_tiles, steps = FromA::cols / mma_k<Element>;
  static_assert(FromA::cols % mma_k<Element> == 0, "K is a whole number of mma steps of 32 bytes");

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
