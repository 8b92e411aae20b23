// C += A B by wgmma: B in shared memory, A there or in registers, C in the registers of warpgroups.
#pragma once
#include "../../sm90_primitives.h"
#include "../gemm.h"
#include "wgmma_accumulator.h"

namespace tl {

constexpr int wgmma_most_columns = 256;                          // of one instruction
template <class T> constexpr int wgmma_k = 32 / int(sizeof(T));  // of one instruction: 32 bytes of each row
// Operands of other than 16 bits, which wgmma reads with K contiguous only; of floats it ignores the low 13 bits.
template <class T>
constexpr bool is_wgmma_byte = is_float8<T> || std::is_same<T, int8_t>::value || std::is_same<T, uint8_t>::value;
template <class T> constexpr bool is_wgmma_float = std::is_same<T, float>::value || std::is_same<T, tfloat32>::value;
// What products of T accumulate in; those of half in half, too.
template <class T> using WgmmaSum = std::conditional_t<std::is_integral<T>::value, int32_t, float>;
template <class T, class Sum>
constexpr bool is_wgmma_sum =
    std::is_same<Sum, WgmmaSum<T>>::value || (std::is_same<Sum, half>::value && std::is_same<T, half>::value);
// Whether the text has included wgmma's instructions of T: tl/sm90/wgmma_half.h and its like bring them.
template <class T, class Sum = WgmmaSum<T>> constexpr bool has_wgmma = false;

// An operand's part that starts `elements` behind its descriptor's; descriptors count in units of 16 bytes.
template <class T> TL_DEVICE uint64_t wgmma_part(uint64_t descriptor, int elements) {
  return descriptor + unsigned(elements) / (16 / unsigned(sizeof(T)));
}

// ---- operands in shared memory -----------------------------------------------------------------------------------
// An operand is a matrix of mn x k, where mn counts the rows of A or the columns of B. offset(mn, k) is where the part
// of one instruction starts, in elements from the tile's start; offsets of multiples of 64 along mn add up.

// A shared tile, or rows and columns of one from (first_row, first_col) on: first_row is a multiple of 8, so that
// swizzles fall alike; first_col is one of the columns of a swizzle's span or, where K runs along the rows and K of the
// product is a part of a span, of that part.
template <class Tile> struct WgmmaSource {
  using Whole = Tile;
  const Whole& whole;
  static constexpr int first_row = 0, first_col = 0;
  TL_DEVICE explicit WgmmaSource(const Tile& tile) : whole(tile) {}
  static TL_DEVICE int anew(int offset) { return offset; }
};
template <class Tile, int rows, int cols> struct WgmmaSource<SubTile<Tile, rows, cols>> {
  using Whole = std::remove_const_t<Tile>;
  const Whole& whole;
  const int first_row, first_col;
  TL_DEVICE explicit WgmmaSource(const SubTile<Tile, rows, cols>& part)
      : whole(*part.tile), first_row(part.first_row), first_col(part.first_col) {}
  // Computed for each product anew: the compiler would keep the descriptors of all parts of a tile, and spill.
  static TL_DEVICE int anew(int offset) { return pin_registers<1>(&offset), offset; }
};

// What all operands demand of a tile.
template <class Tile> struct WgmmaTile {
  using type = typename Tile::type;
  using Whole = typename WgmmaSource<Tile>::Whole;
  static constexpr int slab = Whole::slab_cols, span = slab * int(sizeof(type));
  static_assert(is_small_float<type> || is_wgmma_byte<type> || is_wgmma_float<type>,
                "wgmma multiplies half, bfloat16, float8, int8, uint8, tfloat32 or float here");
  static_assert(alignof(Whole) == 8 * span, "wgmma reads tiles with a swizzle of 128, 64 or 32 bytes");
};

// K runs along a row of the tile.
template <class Tile> struct KContiguous : WgmmaTile<Tile> {
  using Whole = typename WgmmaTile<Tile>::Whole;
  using WgmmaTile<Tile>::slab, WgmmaTile<Tile>::span;
  static constexpr int mn_extent = Tile::rows, k_extent = Tile::cols;
  static constexpr bool is_mn = false;
  static TL_DEVICE constexpr int offset(int mn, int k) { return (k / slab * Whole::rows + mn) * slab + k % slab; }
  // The operand from its row or column `mn` on.
  static TL_DEVICE uint64_t from(const Tile& tile, int mn) {
    const WgmmaSource<Tile> source(tile);
    const uint64_t start = wgmma_descriptor(source.whole.data, 16, 8 * span, span);
    return wgmma_part<typename Tile::type>(start, source.anew(offset(source.first_row + mn, source.first_col)));
  }
};
// K runs down the rows of the tile, and M or N along them.
template <class Tile> struct MnContiguous : WgmmaTile<Tile> {
  using Whole = typename WgmmaTile<Tile>::Whole;
  using WgmmaTile<Tile>::slab, WgmmaTile<Tile>::span;
  static constexpr int mn_extent = Tile::cols, k_extent = Tile::rows;
  static constexpr bool is_mn = true;
  static_assert(sizeof(typename Tile::type) == 2, "wgmma reads operands of 8 and 32 bits with K contiguous only");
  static TL_DEVICE constexpr int offset(int mn, int k) { return (mn / slab * Whole::rows + k) * slab; }
  static TL_DEVICE uint64_t from(const Tile& tile, int mn) {
    const WgmmaSource<Tile> source(tile);
    const uint64_t start = wgmma_descriptor(source.whole.data, Whole::rows * span, 8 * span, span);
    return wgmma_part<typename Tile::type>(start, source.anew(offset(source.first_col + mn, source.first_row)));
  }
};

// B: the columns of the calling warpgroup, which start at `first_col`, seen from an instruction's first column and step
// of K.
template <class Operand> struct WgmmaB : Operand {
  uint64_t start;
  template <class Tile> TL_DEVICE WgmmaB(const Tile& tile, int first_col) : start(Operand::from(tile, first_col)) {}
  TL_DEVICE uint64_t part(int col, int k) const {
    return wgmma_part<typename Operand::type>(start, Operand::offset(col, k));
  }
};
// A: the rows of the calling warpgroup, which start at `first_row`.
template <class Operand> struct WgmmaA : Operand {
  uint64_t start;
  template <class Tile> TL_DEVICE WgmmaA(const Tile& tile, int first_row) : start(Operand::from(tile, first_row)) {}
  template <int n, class Sum, class B>
  TL_DEVICE void multiply(Sum* d, int m, int k, const WgmmaB<B>& b, int col, bool accumulate) const {
    using T = typename Operand::type;
    const uint64_t a = wgmma_part<T>(start, Operand::offset(m * warpgroup_rows, k));
    wgmma_m64<n, Operand::is_mn, B::is_mn>(d, a, b.part(col, k), accumulate, T());
  }
};
// A in registers: two neighbouring n8 tiles of an accumulator's layout are the operand of one step of K.
template <class T, class Layout> struct WgmmaRegistersA {
  using type = T;
  static constexpr int mn_extent = Layout::M, k_extent = Layout::N, steps = k_extent / wgmma_k<T>;
  static_assert(is_small_float<T>, "an operand in registers is half or bfloat16");
  WgmmaWords<T, Layout::registers / 2> words;
  TL_DEVICE explicit WgmmaRegistersA(const Fragment<T, Layout>& from) : words(from.reg) {}
  template <int n, class Sum, class B>
  TL_DEVICE void multiply(Sum* d, int m, int k, const WgmmaB<B>& b, int col, bool accumulate) const {
    wgmma_m64<n, B::is_mn>(d, words.four(m * steps + k / wgmma_k<T>), b.part(col, k), accumulate, T());
  }
};

// A for the product that C accumulates.
template <class T, int rows, int cols, class S, class C>
TL_DEVICE auto wgmma_a(const SharedTile<T, rows, cols, S>& a, const C& c) {
  return WgmmaA<KContiguous<SharedTile<T, rows, cols, S>>>(a, c.first_row);
}
template <class Tile, int rows, int cols, class C>
TL_DEVICE auto wgmma_a(const SubTile<Tile, rows, cols>& a, const C& c) {
  return WgmmaA<KContiguous<SubTile<Tile, rows, cols>>>(a, c.first_row);
}
template <class Tile, class C> TL_DEVICE auto wgmma_a(const Transposed<Tile>& a, const C& c) {
  return WgmmaA<MnContiguous<Tile>>(a.tile, c.first_row);
}
template <class T, class Layout, class C> TL_DEVICE auto wgmma_a(const Fragment<T, Layout>& a, const C&) {
  static_assert(std::is_same<typename Layout::rows, typename C::Layout::rows>::value,
                "an operand in registers has the rows and warpgroups of C: a WgmmaAccumulator");
  return WgmmaRegistersA<T, Layout>(a);
}
template <class Tile, class C> TL_DEVICE auto wgmma_b(const Tile& b, const C& c) {
  using Operand = MnContiguous<Tile>;
  using Layout = typename C::Layout;
  static_assert(Layout::own_cols == Layout::N || Layout::own_cols % Operand::slab == 0,
                "warpgroups share B by whole spans");
  return WgmmaB<Operand>(b, c.first_col);
}
template <class Tile, class C> TL_DEVICE auto wgmma_b(const Transposed<Tile>& b, const C& c) {
  return WgmmaB<KContiguous<Tile>>(b.tile, c.first_col);
}

// ---- the tile ----------------------------------------------------------------------------------------------------

// Starts the products of m tile m for the columns from `first` on, as many as an instruction takes, then for the rest.
template <int first, class A, class B, class Sum, class Layout>
TL_DEVICE void wgmma_columns(const A& a, const B& b, Fragment<Sum, Layout>& C, int m, bool accumulate) {
  constexpr int n = smaller(Layout::own_cols - first, wgmma_most_columns);
  Sum* const d = C.reg + m * Layout::tile_registers + first / 2;
  TL_UNROLL
  for (int k = 0; k < B::k_extent; k += wgmma_k<typename B::type>)
    a.template multiply<n>(d, m, k, b, first, accumulate || k > 0);
  if constexpr (first + n < Layout::own_cols) wgmma_columns<first + n>(a, b, C, m, accumulate);
}

// Starts the product, as one group of instructions.
template <class A, class B, class Sum, class Layout>
TL_DEVICE void wgmma_start(const A& a, const B& b, Fragment<Sum, Layout>& C, bool accumulate) {
  static_assert(A::mn_extent == Layout::M, "A has as many rows as C");
  static_assert(B::mn_extent == Layout::N, "B has as many columns as C");
  static_assert(A::k_extent == B::k_extent, "A has as many columns as B has rows");
  using T = typename A::type;
  static_assert(A::k_extent % wgmma_k<T> == 0,
                "K is a whole number of wgmma steps: 16 elements of 16 bits, 32 of 8, 8 of 32");
  static_assert(std::is_same<T, typename B::type>::value, "A and B have the same element type");
  static_assert(is_wgmma_sum<T, Sum>, "C is float, int32_t for integers, or half for halves");
  static_assert(has_wgmma<T, Sum> || !is_wgmma_sum<T, Sum>,
                "products of these types on wgmma: include tl/sm90/wgmma_half.h, wgmma_half_sums.h, "
                "wgmma_bfloat16.h, wgmma_float8.h, wgmma_int8.h or wgmma_tfloat32.h");
  pin_registers<Layout::registers>(C.reg);
  wgmma_fence();
  TL_UNROLL
  for (int m = 0; m < Layout::m_tiles; ++m) wgmma_columns<0>(a, b, C, m, accumulate);
  wgmma_commit();
}

// Has a fragment's registers written before a loop whose products stay in flight; ptxas otherwise writes them when the
// first product starts, and serialises all (C7515). No instruction.
template <class Sum, class Layout> TL_DEVICE void warpgroup_fence_operand(Fragment<Sum, Layout>& C) {
  pin_registers<Layout::registers>(C.reg);
}

// Waits until at most `pending` of the products that were started last are in flight; those of `fragments` are then
// there. Called by: every thread of their warpgroups.
template <int pending, class... Sums, class... Layouts>
TL_DEVICE void gemm_wait(Fragment<Sums, Layouts>&... fragments) {
  wgmma_wait<pending>();
  (pin_registers<Layouts::registers>(fragments.reg), ...);
}

// A further argument of products on wgmma: C = A B where it holds, C += A B elsewhere; the same in all threads.
struct OverwriteIf {
  bool holds;
};
TL_DEVICE OverwriteIf overwrite_if(bool condition) { return {condition}; }

// As tl::gemm below, but the product is there only after tl::gemm_wait; until then neither C nor the operands may be
// written, nor C be read.
template <class A, class B, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start(const A& a, const B& b, Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C) {
  wgmma_start(wgmma_a(a, C), wgmma_b(b, C), C, true);
}
template <class A, class B, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start(const A& a, const B& b, Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C,
                          Overwrite) {
  wgmma_start(wgmma_a(a, C), wgmma_b(b, C), C, false);
}

template <class A, class B, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start(const A& a, const B& b, Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C,
                          OverwriteIf overwrite) {
  wgmma_start(wgmma_a(a, C), wgmma_b(b, C), C, !overwrite.holds);
}

// C += A B, blocking. a: a shared tile M x K, tl::transposed of one stored K x M, or a fragment of half or bfloat16
// with a WgmmaAccumulator's layout and C's warpgroups; b: a shared tile K x N, or tl::transposed of one stored N x K.
// Operands of 8 and 32 bits have K contiguous: a shared tile M x K, and tl::transposed of one stored N x K.
// Shared tiles have a swizzle of 128, 64 or 32 bytes.
// Called by: every thread of C's warpgroups. Reads shared memory without a barrier; what ordinary stores wrote there
// needs tl::sync_consumers before.
template <class A, class B, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C) {
  gemm_start(a, b, C), gemm_wait<0>(C);
}
// C = A B, everywhere or where it is asked for.
template <class A, class B, class Sum, int M, int N, int along_m, int along_n, class How>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C, How overwrite) {
  gemm_start(a, b, C, overwrite), gemm_wait<0>(C);
}

}  // namespace tl
