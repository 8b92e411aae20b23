// C += A B on the tensor cores, where A has two of each four neighbours along K.
#pragma once
#include "gemm.h"

namespace tl {

constexpr int sparse_k = 32;  // of one instruction; A holds 16 of them

// The metadata of 16 columns, 4 bits for each four of them: piece number `piece` of a row of E.
template <class Tile> TL_DEVICE uint32_t metadata_piece(const Tile& e, int row, int piece) {
  using T = typename Tile::type;
  if constexpr (sizeof(T) == 4)
    return static_cast<uint32_t>(*e.at(row, piece / 2)) >> piece % 2 * 16 & 0xffff;
  else if constexpr (sizeof(T) == 2)
    return static_cast<uint16_t>(*e.at(row, piece));
  else
    return static_cast<uint8_t>(*e.at(row, 2 * piece)) |
           static_cast<uint32_t>(static_cast<uint8_t>(*e.at(row, 2 * piece + 1))) << 8;
}
// What a lane gives of the metadata of 16 rows x 32 columns, if selector 0 asks lanes 4g and 4g + 1: columns 0..15 or
// 16..31 of row g in the lower half, of row g + 8 in the upper.
// [PTX ISA, "Sparse MMA metadata layout for .m16n8k32 for .f16 / .bf16 type"]
template <class Tile> TL_DEVICE uint32_t metadata_word(const Tile& e, int row, int k) {
  const int line = row + lane() / 4, piece = k / 16 + lane() % 2;
  return metadata_piece(e, line, piece) | metadata_piece(e, line + 8, piece) << 16;
}

// C += A B. a: a shared tile M x K/2 of half or bfloat16, of each four neighbours along K the two that e names; e: a
// shared tile of M rows of integers, of which 4 bits say for each four where the two are, the first in the lower 2;
// b: a shared tile K x N, or tl::transposed of one stored N x K; C: a fragment of float.
// Who: every warp of C's layout. Reads shared memory without a barrier.
template <class A, class E, class B, int M, int N, class W>
TL_DEVICE void gemm_sparse(const A& a, const E& e, const B& b, Fragment<float, MmaAccumulator<M, N, W>>& C) {
  using Layout = MmaAccumulator<M, N, W>;
  using T = typename A::type;
  const auto from_a = operand_a(a);
  const auto from_b = operand_b<KOrder::memory>(b);
  using FromB = std::decay_t<decltype(from_b)>;
  static_assert(is_small_float<T> && std::is_same<T, typename FromB::type>::value, "half or bfloat16, both of them");
  static_assert(A::rows == M && E::rows == M && FromB::cols == N, "A and E have C's rows, B has its columns");
  static_assert(2 * A::cols == FromB::rows, "A has half as many columns as B has rows");
  static_assert(FromB::rows % sparse_k == 0, "K is a whole number of steps of 32");
  static_assert(E::cols * 2 * int(sizeof(typename E::type)) == FromB::rows / 4, "E has 4 bits for each four of K");

  const int row = Layout::first_row(), col = Layout::first_col();
  TL_UNROLL
  for (int k = 0; k < FromB::rows; k += sparse_k) {
    uint32_t operand[Layout::m_tiles][4], metadata[Layout::m_tiles];
    TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) {
      from_a.load(operand[m], row, m, k / 2);
      metadata[m] = metadata_word(e, row + 16 * m, k);
    }
    TL_UNROLL
    for (int n = 0; n < Layout::n_tiles; ++n) {
      uint32_t columns[4];
      TL_UNROLL
      for (int half_step = 0; half_step < 2; ++half_step)
        from_b.load_one(*reinterpret_cast<uint32_t (*)[2]>(columns + 2 * half_step), k + 16 * half_step, col, n);
      TL_UNROLL
      for (int m = 0; m < Layout::m_tiles; ++m)
        mma_sparse_m16n8k32(&C.reg[(m * Layout::n_tiles + n) * 4], operand[m], columns, metadata[m], T());
    }
  }
}
template <class A, class E, class B, int M, int N, class W>
TL_DEVICE void gemm_sparse(const A& a, const E& e, const B& b, Fragment<float, MmaAccumulator<M, N, W>>& C, Overwrite) {
  clear(C);
  gemm_sparse(a, e, b, C);
}

}  // namespace tl
