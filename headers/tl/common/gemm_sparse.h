// C += A B on the tensor cores, where A has two of each four neighbours along K.
#pragma once
#include "gemm.h"

namespace tl {

template <class T> constexpr int sparse_k = 2 * mma_k<T>;  // of one instruction; A holds half of them

// Metadata in a shared tile of M rows, or (tl::transposed) of M columns: element `at` along K of a row of A.
template <class Tile> TL_DEVICE uint32_t metadata_at(const Tile& e, int row, int at) {
  return static_cast<std::make_unsigned_t<typename Tile::type>>(*e.at(row, at));
}
template <class Tile> TL_DEVICE uint32_t metadata_at(const Transposed<Tile>& e, int row, int at) {
  return static_cast<std::make_unsigned_t<typename Tile::type>>(*e.tile.at(at, row));
}
// The metadata of 16 columns, 4 bits for each four of them: piece number `piece` of a row.
template <class Tile, class E> TL_DEVICE uint32_t metadata_piece(const E& e, int row, int piece) {
  constexpr int size = sizeof(typename Tile::type);
  if constexpr (size == 4)
    return metadata_at(e, row, piece / 2) >> piece % 2 * 16 & 0xffff;
  else if constexpr (size == 2)
    return metadata_at(e, row, piece);
  else
    return metadata_at(e, row, 2 * piece) | metadata_at(e, row, 2 * piece + 1) << 8;
}
// What a lane gives of the metadata of 16 rows and one instruction's columns. Of elements of 16 bits, lanes 4g and
// 4g + 1 are asked: columns 0..15 or 16..31, of row g in the lower half, of row g + 8 in the upper. Of elements of 8
// bits, lane 4g + t gives 32 columns from 32 (t / 2) on, of row g + 8 (t % 2).
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
    static_assert(!T::is_fnuz, "formats of the OCP");
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

// C += A B. a: a shared tile M x K/2, or tl::transposed of one stored K/2 x M, of half, bfloat16, int8 or, on machines
// that multiply them, float8; of each four neighbours along K the two that e names. e: a shared tile of M rows of
// integers, or tl::transposed of one of M columns, of which 4 bits say for each four where the two are, the first in
// the lower 2. b: a shared tile K x N, or tl::transposed of one stored N x K. C: a fragment of float, of int for int8.
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
  static_assert(std::is_same<T, typename FromB::type>::value, "A and B have one type");
  static_assert(FromA::rows == M && Metadata::rows == M && FromB::cols == N, "A and E have C's rows, B its columns");
  static_assert(2 * FromA::cols == FromB::rows, "A has half as many columns as B has rows");
  static_assert(FromB::rows % steps == 0, "K is a whole number of the instruction's steps");
  static_assert(Metadata::cols * 2 * int(sizeof(typename Tile::type)) == FromB::rows / 4,
                "E has 4 bits for each four of K");

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
