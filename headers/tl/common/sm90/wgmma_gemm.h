// C += A B by wgmma: B in shared memory, A in shared memory or registers, C in the registers of warpgroups.
#pragma once
#include "../../sm90_primitives.h"
#include "../gemm.h"
#include "wgmma_accumulator.h"

namespace tl {

constexpr int wgmma_most_columns = 256;                          // N of one instruction
template <class T> constexpr int wgmma_k = 32 / int(sizeof(T));  // K of one instruction: 32 bytes
// 8-bit and 32-bit operands, which must be K-major; of floats wgmma ignores the low 13 bits.
template <class T>
constexpr bool is_wgmma_byte = is_float8<T> || std::is_same<T, int8_t>::value || std::is_same<T, uint8_t>::value;
template <class T> constexpr bool is_wgmma_float = std::is_same<T, float>::value || std::is_same<T, tfloat32>::value;
// The accumulator type of T; half may also accumulate in half.
template <class T> using WgmmaSum = std::conditional_t<std::is_integral<T>::value, int32_t, float>;
template <class T, class Sum>
constexpr bool is_wgmma_sum =
    std::is_same<Sum, WgmmaSum<T>>::value || (std::is_same<Sum, half>::value && std::is_same<T, half>::value);
// Whether the wgmma instructions of T are included, by tl/sm90/wgmma_half.h or a similar header.
template <class T, class Sum = WgmmaSum<T>> constexpr bool has_wgmma = false;

// The descriptor advanced by `elements`; descriptors address units of 16 bytes.
template <class T> TL_DEVICE uint64_t wgmma_part(uint64_t descriptor, int elements) {
  return descriptor + unsigned(elements) / (16 / unsigned(sizeof(T)));
}

// ---- operands in shared memory -----------------------------------------------------------------------------------
// An operand is a matrix of mn x k, where mn is a row of A or a column of B. offset(mn, k) is the start of one
// instruction's part, in elements from the tile's start; offset is additive in multiples of 64 along mn.

// A shared tile, or a part of one from (first_row, first_col) on. first_row is a multiple of 8, the period of the
// swizzle. first_col selects a swizzle span; for a K-major operand whose K is a part of a span, also that part.
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
  // Recomputed for each MMA: the compiler would keep the descriptors of all parts of a tile in registers, and spill.
  static TL_DEVICE int anew(int offset) { return pin_registers<1>(&offset), offset; }
};

// The requirements of all operands.
template <class Tile> struct WgmmaTile {
  using type = typename Tile::type;
  using Whole = typename WgmmaSource<Tile>::Whole;
  static constexpr int slab = Whole::slab_cols, span = slab * int(sizeof(type));
  static_assert(is_small_float<type> || is_wgmma_byte<type> || is_wgmma_float<type>,
                "wgmma multiplies half, bfloat16, float8, int8, uint8, tfloat32 or float here");
  static_assert(alignof(Whole) == 8 * span, "wgmma reads tiles with a swizzle of 128, 64 or 32 bytes");
};

// K-major: K runs along the tile's rows.
template <class Tile> struct KContiguous : WgmmaTile<Tile> {
  using Whole = typename WgmmaTile<Tile>::Whole;
  using WgmmaTile<Tile>::slab, WgmmaTile<Tile>::span;
  static constexpr int mn_extent = Tile::rows, k_extent = Tile::cols;
  static constexpr bool is_mn = false;
  static TL_DEVICE constexpr int offset(int mn, int k) { return (k / slab * Whole::rows + mn) * slab + k % slab; }
  // The descriptor of the operand from row or column `mn` on.
  static TL_DEVICE uint64_t from(const Tile& tile, int mn) {
    const WgmmaSource<Tile> source(tile);
    const uint64_t start = wgmma_descriptor(source.whole.data, 16, 8 * span, span);
    return wgmma_part<typename Tile::type>(start, source.anew(offset(source.first_row + mn, source.first_col)));
  }
};
// MN-major: M or N runs along the tile's rows.
template <class Tile> struct MnContiguous : WgmmaTile<Tile> {
  using Whole = typename WgmmaTile<Tile>::Whole;
  using WgmmaTile<Tile>::slab, WgmmaTile<Tile>::span;
  static constexpr int mn_extent = Tile::cols, k_extent = Tile::rows;
  static constexpr bool is_mn = true;
  static_assert(sizeof(typename Tile::type) == 2, "8-bit and 32-bit operands of wgmma must be K-major");
  static TL_DEVICE constexpr int offset(int mn, int k) { return (mn / slab * Whole::rows + k) * slab; }
  static TL_DEVICE uint64_t from(const Tile& tile, int mn) {
    const WgmmaSource<Tile> source(tile);
    const uint64_t start = wgmma_descriptor(source.whole.data, Whole::rows * span, 8 * span, span);
    return wgmma_part<typename Tile::type>(start, source.anew(offset(source.first_col + mn, source.first_row)));
  }
};

// B: the calling warpgroup's columns, from `first_col` on; part(col, k) is one instruction's descriptor.
template <class Operand> struct WgmmaB : Operand {
  uint64_t start;
  template <class Tile> TL_DEVICE WgmmaB(const Tile& tile, int first_col) : start(Operand::from(tile, first_col)) {}
  TL_DEVICE uint64_t part(int col, int k) const {
    return wgmma_part<typename Operand::type>(start, Operand::offset(col, k));
  }
};
// A: the calling warpgroup's rows, from `first_row` on.
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
// A in registers: two neighbouring n8 tiles of an accumulator's layout are the A operand of one step of K.
template <class T, class Layout> struct WgmmaRegistersA {
  using type = T;
  static constexpr int mn_extent = Layout::M, k_extent = Layout::N, steps = k_extent / wgmma_k<T>;
  static_assert(is_small_float<T>, "a register operand A is half or bfloat16");
  WgmmaWords<T, Layout::registers / 2> words;
  TL_DEVICE explicit WgmmaRegistersA(const Fragment<T, Layout>& from) : words(from.reg) {}
  template <int n, class Sum, class B>
  TL_DEVICE void multiply(Sum* d, int m, int k, const WgmmaB<B>& b, int col, bool accumulate) const {
    wgmma_m64<n, B::is_mn>(d, words.four(m * steps + k / wgmma_k<T>), b.part(col, k), accumulate, T());
  }
};

// The operands A and B for the accumulator C.
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
                "a register operand A has the rows and warpgroups of C: a WgmmaAccumulator");
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

// Issues the MMAs of m tile m for the columns from `first` on: as many as one instruction takes, then the rest.
template <int first, class A, class B, class Sum, class Layout>
TL_DEVICE void wgmma_columns(const A& a, const B& b, Fragment<Sum, Layout>& C, int m, bool accumulate) {
  constexpr int n = smaller(Layout::own_cols - first, wgmma_most_columns);
  Sum* const d = C.reg + m * Layout::tile_registers + first / 2;
  TL_UNROLL
  for (int k = 0; k < B::k_extent; k += wgmma_k<typename B::type>)
    a.template multiply<n>(d, m, k, b, first, accumulate || k > 0);
  if constexpr (first + n < Layout::own_cols) wgmma_columns<first + n>(a, b, C, m, accumulate);
}

// Issues the MMAs, and commits them as one wgmma group.
template <class A, class B, class Sum, class Layout>
TL_DEVICE void wgmma_start(const A& a, const B& b, Fragment<Sum, Layout>& C, bool accumulate) {
  static_assert(A::mn_extent == Layout::M, "A has as many rows as C");
  static_assert(B::mn_extent == Layout::N, "B has as many columns as C");
  static_assert(A::k_extent == B::k_extent, "A has as many columns as B has rows");
  using T = typename A::type;
  static_assert(A::k_extent % wgmma_k<T> == 0, "K is a multiple of 32 bytes: 16 elements of 16 bits, 32 of 8, 8 of 32");
  static_assert(std::is_same<T, typename B::type>::value, "A and B have the same element type");
  static_assert(is_wgmma_sum<T, Sum>, "C is float, int32_t for integers, or half for halves");
  static_assert(has_wgmma<T, Sum> || !is_wgmma_sum<T, Sum>,
                "wgmma of these types: include tl/sm90/wgmma_half.h, wgmma_half_accumulators.h, "
                "wgmma_bfloat16.h, wgmma_float8.h, wgmma_int8.h or wgmma_tfloat32.h");
  pin_registers<Layout::registers>(C.reg);
  wgmma_fence();
  TL_UNROLL
  for (int m = 0; m < Layout::m_tiles; ++m) wgmma_columns<0>(a, b, C, m, accumulate);
  wgmma_commit();
}

// Materialises a fragment's registers before a loop with pending MMAs: ptxas otherwise initialises them after the first
// wgmma is issued, and serialises all (warning C7515). No instruction.
template <class Sum, class Layout> TL_DEVICE void warpgroup_fence_operand(Fragment<Sum, Layout>& C) {
  pin_registers<Layout::registers>(C.reg);
}

// Waits until at most the `pending` most recent MMA groups are outstanding; `fragments` are then complete.
// Called by: every thread of their warpgroups.
template <int pending, class... Sums, class... Layouts>
TL_DEVICE void gemm_wait(Fragment<Sums, Layouts>&... fragments) {
  wgmma_wait<pending>();
  (pin_registers<Layouts::registers>(fragments.reg), ...);
}

// An argument of gemm and gemm_start: C = A B if `holds`, else C += A B; uniform over the warpgroup.
struct OverwriteIf {
  bool holds;
};
TL_DEVICE OverwriteIf overwrite_if(bool condition) { return {condition}; }

// As tl::gemm below, without waiting: the result is complete after tl::gemm_wait. Until then C must not be accessed,
// and the operands must not be written.
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
// 8-bit and 32-bit operands are K-major: a shared tile M x K, and tl::transposed of one stored N x K.
// Shared tiles have a swizzle of 128, 64 or 32 bytes.
// Called by: every thread of C's warpgroups. Reads shared memory without a barrier; generic-proxy writes to it need
// tl::sync_consumers before.
template <class A, class B, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C) {
  gemm_start(a, b, C), gemm_wait<0>(C);
}
// C = A B with tl::overwrite, or as tl::overwrite_if states.
template <class A, class B, class Sum, int M, int N, int along_m, int along_n, class How>
TL_DEVICE void gemm(const A& a, const B& b, Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C, How overwrite) {
  gemm_start(a, b, C, overwrite), gemm_wait<0>(C);
}

}  // namespace tl
