// C += A B on the tensor cores with 2:4 structured sparsity of A along K.
#pragma once
#include "gemm.h"

namespace tl {

template <class T> constexpr int sparse_k = 2 * mma_k<T>;  // of one instruction; A stores half of them

// Element `at` along K of the metadata of a row of A. The metadata is a shared tile of M rows, or tl::transposed of one
// of M columns.
template <class Tile> TL_DEVICE uint32_t metadata_at(const Tile& e, int row, int at) {
  return static_cast<std::make_unsigned_t<typename Tile::type>>(*e.at(row, at));
}
template <class Tile> TL_DEVICE uint32_t metadata_at(const Transposed<Tile>& e, int row, int at) {
  return static_cast<std::make_unsigned_t<typename Tile::type>>(*e.tile.at(at, row));
}
// The metadata of 16 columns, 4 bits per group of four: number `piece` of a row.
template <class Tile, class E> TL_DEVICE uint32_t metadata_piece(const E& e, int row, int piece) {
  constexpr int size = sizeof(typename Tile::type);
  if constexpr (size == 4)
    return metadata_at(e, row, piece / 2) >> piece % 2 * 16 & 0xffff;
  else if constexpr (size == 2)
    return metadata_at(e, row, piece);
  else
    return metadata_at(e, row, 2 * piece) | metadata_at(e, row, 2 * piece + 1) << 8;
}
// The metadata operand of a lane, for 16 rows and the columns of one instruction. 16-bit elements: lanes 4g and 4g + 1
// provide columns 0..15 and 16..31, with row g in the lower half and row g + 8 in the upper half. 8-bit elements: lane
// 4g + t provides 32 columns from 32 (t / 2) on, for row g + 8 (t % 2).
// [PTX ISA, "Sparse MMA metadata layout for .m16n8k32 for .f16 / .bf16 type", "... for .m16n8k64 for .u8 / .s8 type"]
template <class T, class Tile, class E> TL_DEVICE uint32_t metadata_word(const E& e, int row, int k) {
  const int line = row + lane() / 4, t = lane() % 4, piece = k / 16 + (sizeof(T) == 2 ? t % 2 : t / 2 * 2);
  if constexpr (sizeof(T) == 2)
    return metadata_piece<Tile>(e, line, piece) | metadata_piece<Tile>(e, line + 8, piece) << 16;
  else
    return metadata_piece<Tile>(e, line + t % 2 * 8, piece) | metadata_piece<Tile>(e, line + t % 2 * 8, piece + 1)
                                                                  << 16;
}

template <class T, class D>
TL_DEVICE void sparse_product(D* d, const uint32_t* a, const uint32_t* b, uint32_t metadata) {
  if constexpr (is_float8<T>) {
    static_assert(!T::is_fnuz, "float8 operands are of the OCP formats");
    Float8Instructions::mma_sparse(d, a, b, metadata, T::is_e4m3);
  } else {
    mma_sparse(d, a, b, metadata, T());
  }
}

template <class E> struct MetadataTile {
  using type = E;
  static constexpr int rows = E::rows, cols = E::cols;
};
template <class E> struct MetadataTile<Transposed<E>> {
  using type = E;
  static constexpr int rows = E::cols, cols = E::rows;
};

// C += A B with 2:4 sparse A.
// a: a shared tile M x K/2, or tl::transposed of a shared tile K/2 x M, of half, bfloat16, int8 or, on targets with an
// MMA for it, float8. It stores two of each four consecutive elements along K.
// e: the metadata, a shared tile of integers with M rows, or tl::transposed of one with M columns. It has 4 bits per
// group of four: the positions of the two stored elements, the first one in the lower 2 bits.
// b: a shared tile K x N, or tl::transposed of a shared tile N x K.
// C: a fragment of float; of int for int8.
// Called by: every warp of C's layout. Reads shared memory without a barrier.
template <class A, class E, class B, class D, int M, int N, class W>
TL_DEVICE void gemm_sparse(const A& a, const E& e, const B& b, Fragment<D, MmaAccumulator<M, N, W>>& C) {
  using Layout = MmaAccumulator<M, N, W>;
  const auto from_a = operand_a(a);
  const auto from_b = operand_b<KOrder::memory>(b);
  using FromA = std::decay_t<decltype(from_a)>;
  using FromB = std::decay_t<decltype(from_b)>;
  using T = typename FromA::type;
  using Metadata = MetadataTile<E>;
  using Tile = typename Metadata::type;
  constexpr int steps = sparse_k<T>;
  static_assert(std::is_same<T, typename FromB::type>::value, "A and B have the same element type");
  static_assert(FromA::rows == M && Metadata::rows == M && FromB::cols == N,
                "A and E have as many rows as C, B as many columns");
  static_assert(2 * FromA::cols == FromB::rows, "A has half as many columns as B has rows");
  static_assert(FromB::rows % steps == 0, "K is a multiple of the instruction's K");
  static_assert(Metadata::cols * 2 * int(sizeof(typename Tile::type)) == FromB::rows / 4,
                "E has 4 bits per four elements of K");

  const int row = Layout::first_row(), col = Layout::first_col();
  TL_UNROLL
  for (int k = 0; k < FromB::rows; k += steps) {
    uint32_t operand[Layout::m_tiles][4], metadata[Layout::m_tiles];
    TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) {
      from_a.load(operand[m], row, m, k / 2);
      metadata[m] = metadata_word<T, Tile>(e, row + 16 * m, k);
    }
    TL_UNROLL
    for (int n = 0; n < Layout::n_tiles; ++n) {
      uint32_t columns[4];
      TL_UNROLL
      for (int half_step = 0; half_step < 2; ++half_step)
        from_b.load_one(*reinterpret_cast<uint32_t (*)[2]>(columns + 2 * half_step), k + mma_k<T> * half_step, col, n);
      TL_UNROLL
      for (int m = 0; m < Layout::m_tiles; ++m)
        sparse_product<T>(&C.reg[(m * Layout::n_tiles + n) * 4], operand[m], columns, metadata[m]);
    }
  }
}
template <class A, class E, class B, class D, int M, int N, class W>
TL_DEVICE void gemm_sparse(const A& a, const E& e, const B& b, Fragment<D, MmaAccumulator<M, N, W>>& C, Overwrite) {
  clear(C);
  gemm_sparse(a, e, b, C);
}

}  // namespace tl
