// C += A B by multiply-adds of each thread, for element types without a tensor core instruction.
#pragma once
#include "fragment.h"
#include "gemm.h"
#include "shared_tile.h"

namespace tl {

// The element in row i and column k of op(A).
template <class Tile> TL_DEVICE auto element_of(const Tile& tile, int i, int k) { return *tile.at(i, k); }
template <class Tile> TL_DEVICE auto element_of(const Transposed<Tile>& tile, int i, int k) {
  return *tile.tile.at(k, i);
}
template <class Tile> TL_BOTH constexpr int columns_of(const Tile&) { return Tile::cols; }
template <class Tile> TL_BOTH constexpr int columns_of(const Transposed<Tile>&) { return Tile::rows; }

// a, b: shared tiles, subtiles, or tl::transposed of those. C: a fragment with any two-dimensional layout that defines
// `rows` and `cols`. For each k, a thread reads the elements of its rows and columns and converts them to C's type.
// Called by: every thread of C's layout. Reads shared memory without a barrier.
template <class A, class B, class T, class Layout>
TL_DEVICE void gemm_fma(const A& a, const B& b, Fragment<T, Layout>& C) {
  using Rows = Slice<1, Layout>;
  using Cols = Slice<0, Layout>;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r)
    if (Layout::valid(r)) TL_CHECK_ACCUMULATOR(C.reg[r]);
  TL_NO_UNROLL
  for (int k = 0; k < columns_of(a); ++k) {
    T left[Rows::registers], right[Cols::registers];
    TL_UNROLL
    for (int r = 0; r < Rows::registers; ++r)
      left[r] = Rows::valid(r) ? convert<T>(element_of(a, Rows::template coordinate<0>(r), k)) : T(0);
    TL_UNROLL
    for (int r = 0; r < Cols::registers; ++r)
      right[r] = Cols::valid(r) ? convert<T>(element_of(b, k, Cols::template coordinate<0>(r))) : T(0);
    TL_UNROLL
    for (int r = 0; r < Layout::registers; ++r)
      C.reg[r] = C.reg[r] + left[Layout::row_register(r)] * right[Layout::col_register(r)];
  }
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) TL_MARK_COMPUTED(C.reg[r]);
}
template <class A, class B, class T, class Layout>
TL_DEVICE void gemm_fma(const A& a, const B& b, Fragment<T, Layout>& C, Overwrite) {
  clear(C);
  gemm_fma(a, b, C);
}

}  // namespace tl
