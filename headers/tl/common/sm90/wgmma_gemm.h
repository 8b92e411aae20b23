// C += A B by wgmma: B in shared memory, A there or in registers, C in the registers of warpgroups.
#pragma once
#include "../../sm90_primitives.h"
#include "../gemm.h"
#include "wgmma_accumulator.h"

namespace tl {

constexpr int wgmma_k = 16, wgmma_most_columns = 256;  // of one instruction on 16-bit operands

// ---- operands in shared memory -----------------------------------------------------------------------------------
// An operand is a matrix of mn x k, where mn counts the rows of A or the columns of B. offset(mn, k) is where the part
// of one instruction starts, in elements from the tile's start; offsets of multiples of 64 along mn add up.

// What all operands demand of a tile.
template <class Tile> struct WgmmaTile {
  using type = typename Tile::type;
  static constexpr int span = Tile::panel_cols * int(sizeof(type));
  static_assert(is_small_float<type>, "wgmma multiplies half or bfloat16 here");
  static_assert(alignof(Tile) == 8 * span, "wgmma reads tiles with a swizzle of 128, 64 or 32 bytes");
};

// K runs along a row of the tile.
template <class Tile> struct KContiguous : WgmmaTile<Tile> {
  using WgmmaTile<Tile>::span;
  static constexpr int mn_extent = Tile::rows, k_extent = Tile::cols;
  static constexpr bool is_mn = false;
  static TL_DEVICE uint64_t descriptor(const Tile& tile) { return wgmma_descriptor(tile.data, 16, 8 * span, span); }
  static TL_DEVICE constexpr int offset(int mn, int k) {
    return (k / Tile::panel_cols * Tile::rows + mn) * Tile::panel_cols + k % Tile::panel_cols;
  }
};
// K runs down the rows of the tile, and M or N along them.
template <class Tile> struct MnContiguous : WgmmaTile<Tile> {
  using WgmmaTile<Tile>::span;
  static constexpr int mn_extent = Tile::cols, k_extent = Tile::rows;
  static constexpr bool is_mn = true;
  static TL_DEVICE uint64_t descriptor(const Tile& tile) {
    return wgmma_descriptor(tile.data, Tile::rows * span, 8 * span, span);
  }
  static TL_DEVICE constexpr int offset(int mn, int k) {
    return (mn / Tile::panel_cols * Tile::rows + k) * Tile::panel_cols;
  }
};

// An operand's part that starts `elements` behind its descriptor's; descriptors count in units of 16 bytes.
TL_DEVICE uint64_t wgmma_part(uint64_t descriptor, int elements) { return descriptor + unsigned(elements) / 8; }

// B, seen from an instruction's first column and step of K.
template <class Operand> struct WgmmaB : Operand {
  uint64_t start;
  template <class Tile> TL_DEVICE explicit WgmmaB(const Tile& tile) : start(Operand::descriptor(tile)) {}
  TL_DEVICE uint64_t part(int col, int k) const { return wgmma_part(start, Operand::offset(col, k)); }
};
// A: the rows of the calling warpgroup, which start at `first_row`.
template <class Operand> struct WgmmaA : Operand {
  uint64_t start;
  template <class Tile>
  TL_DEVICE WgmmaA(const Tile& tile, int first_row)
      : start(wgmma_part(Operand::descriptor(tile), Operand::offset(first_row, 0))) {}
  template <int n, class B>
  TL_DEVICE void multiply(float* d, int m, int k, const WgmmaB<B>& b, int col, bool accumulate) const {
    wgmma_m64k16<n, Operand::is_mn, B::is_mn>(d, wgmma_part(start, Operand::offset(m * warpgroup_rows, k)),
                                              b.part(col, k), accumulate, typename Operand::type());
  }
};
// A in registers: two neighbouring n8 tiles of an accumulator's layout are the operand of one step of K.
template <class T, class Layout> struct WgmmaRegistersA {
  using type = T;
  static constexpr int mn_extent = Layout::M, k_extent = Layout::N, steps = k_extent / wgmma_k;
  static_assert(is_small_float<T>, "an operand in registers is half or bfloat16");
  WgmmaWords<T, Layout::registers / 2> words;
  TL_DEVICE explicit WgmmaRegistersA(const Fragment<T, Layout>& from) : words(from.reg) {}
  template <int n, class B>
  TL_DEVICE void multiply(float* d, int m, int k, const WgmmaB<B>& b, int col, bool accumulate) const {
    wgmma_m64k16<n, B::is_mn>(d, words.four(m * steps + k / wgmma_k), b.part(col, k), accumulate, T());
  }
};

// A for an accumulator of layout C.
template <class C, class T, int rows, int cols, class S> TL_DEVICE auto wgmma_a(const SharedTile<T, rows, cols, S>& a) {
  return WgmmaA<KContiguous<SharedTile<T, rows, cols, S>>>(a, C::first_row());
}
template <class C, class Tile> TL_DEVICE auto wgmma_a(const Transposed<Tile>& a) {
  return WgmmaA<MnContiguous<Tile>>(a.tile, C::first_row());
}
template <class C, class T, class Layout> TL_DEVICE auto wgmma_a(const Fragment<T, Layout>& a) {
  static_assert(std::is_same<typename Layout::rows, typename C::rows>::value,
                "an operand in registers has the rows and warpgroups of C: a WgmmaAccumulator");
  return WgmmaRegistersA<T, Layout>(a);
}
template <class T, int rows, int cols, class S> TL_DEVICE auto wgmma_b(const SharedTile<T, rows, cols, S>& b) {
  return WgmmaB<MnContiguous<SharedTile<T, rows, cols, S>>>(b);
}
template <class Tile> TL_DEVICE auto wgmma_b(const Transposed<Tile>& b) { return WgmmaB<KContiguous<Tile>>(b.tile); }

// ---- the tile ----------------------------------------------------------------------------------------------------

// Starts the products of m tile m for the columns from `first` on, as many as an instruction takes, then for the rest.
template <int first, class A, class B, class Layout>
TL_DEVICE void wgmma_columns(const A& a, const B& b, Fragment<float, Layout>& C, int m, bool accumulate) {
  constexpr int n = smaller(Layout::N - first, wgmma_most_columns);
  float* const d = C.reg + m * Layout::tile_registers + first / 2;
  TL_UNROLL
  for (int k = 0; k < B::k_extent; k += wgmma_k) a.template multiply<n>(d, m, k, b, first, accumulate || k > 0);
  if constexpr (first + n < Layout::N) wgmma_columns<first + n>(a, b, C, m, accumulate);
}

// Starts the product, as one group of instructions.
template <class A, class B, class Layout>
TL_DEVICE void wgmma_start(const A& a, const B& b, Fragment<float, Layout>& C, bool accumulate) {
  static_assert(A::mn_extent == Layout::M, "A has as many rows as C");
  static_assert(B::mn_extent == Layout::N, "B has as many columns as C");
  static_assert(A::k_extent == B::k_extent, "A has as many columns as B has rows");
  static_assert(A::k_extent % wgmma_k == 0, "K is a whole number of wgmma steps of 16");
  static_assert(std::is_same<typename A::type, typename B::type>::value, "A and B have the same element type");
  pin_registers<Layout::registers>(C.reg);
  wgmma_fence();
  TL_UNROLL
  for (int m = 0; m < Layout::m_tiles; ++m) wgmma_columns<0>(a, b, C, m, accumulate);
  wgmma_commit();
}

// Waits until at most `pending` of the products that were started last are in flight; those of `fragments` are then
// there. Who: every thread of their warpgroups.
template <int pending, class... Layouts> TL_DEVICE void gemm_wait(Fragment<float, Layouts>&... fragments) {
  wgmma_wait<pending>();
  (pin_registers<Layouts::registers>(fragments.reg), ...);
}

// As tl::gemm below, but the product is there only after tl::gemm_wait; until then neither C nor the operands may be
// written, nor C be read.
template <class A, class B, int M, int N, int warpgroups>
TL_DEVICE void gemm_start(const A& a, const B& b, Fragment<float, WgmmaAccumulator<M, N, warpgroups>>& C) {
  wgmma_start(wgmma_a<WgmmaAccumulator<M, N, warpgroups>>(a), wgmma_b(b), C, true);
}
template <class A, class B, int M, int N, int warpgroups>
TL_DEVICE void gemm_start(const A& a, const B& b, Fragment<float, WgmmaAccumulator<M, N, warpgroups>>& C, Overwrite) {
  wgmma_start(wgmma_a<WgmmaAccumulator<M, N, warpgroups>>(a), wgmma_b(b), C, false);
}

// C += A B, blocking. a: a shared tile M x K, tl::transposed of one stored K x M, or a fragment of half or bfloat16
// with a WgmmaAccumulator's layout and C's warpgroups; b: a shared tile K x N, or tl::transposed of one stored N x K.
// Shared tiles have a swizzle of 128, 64 or 32 bytes.
// Who: every thread of C's warpgroups. Reads shared memory without a barrier; what ordinary stores wrote there needs
// tl::sync_consumers before.
template <class A, class B, int M, int N, int warpgroups>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<float, WgmmaAccumulator<M, N, warpgroups>>& C) {
  gemm_start(a, b, C), gemm_wait<0>(C);
}
// C = A B.
template <class A, class B, int M, int N, int warpgroups>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<float, WgmmaAccumulator<M, N, warpgroups>>& C, Overwrite) {
  gemm_start(a, b, C, overwrite), gemm_wait<0>(C);
}

}  // namespace tl
