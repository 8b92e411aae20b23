// Inclusive scans along a dimension: result i combines the elements 0..i or, reversed, i..n-1.
#pragma once
#include "copy.h"
#include "reduce.h"

namespace tl {

// Shared memory for scans of fragments with these extents, in the type of the result.
template <class T, int... extents> struct ScanWorkspace;
template <class T, int n> struct ScanWorkspace<T, n> {
  SharedTile1D<T, n> tile;
};
template <class T, int M, int N> struct ScanWorkspace<T, M, N> {
  SharedTile<T, M, N, NoSwizzle> tile;
};

// The rows or columns of a tile along `dim`, and their elements in the order of the scan.
template <class Tile, int dim, bool reversed> struct ScanLines {
  static_assert(dim >= 0 && dim < Tile::rank, "`dim` is a dimension of the tile");
  static constexpr int length = Tile::rank == 1 || dim == 1 ? Tile::cols : Tile::rows;
  static constexpr int count = Tile::rows * Tile::cols / length;
  template <class Any> static TL_DEVICE auto& at(Any& tile, int line, int i) {
    const int place = reversed ? length - 1 - i : i;
    if constexpr (Tile::rank == 1)
      return tile(place);
    else if constexpr (dim == 1)
      return tile(line, place);
    else
      return tile(place, line);
  }
};

// The accumulator type: 16-bit results are rounded once, not at each step.
template <class T> using ScanType = FloatOf<T>;

// Each thread scans one row or column in `length` steps; neighbouring threads access neighbouring elements, without
// bank conflicts.
template <class Op, int threads, class FromLines, class ToLines, class From, class To>
TL_DEVICE void scan_by_threads(const From& from, To& to) {
  using T = typename To::type;
  TL_NO_UNROLL
  for (int line = thread(); line < ToLines::count; line += threads) {
    auto total = Op::template identity<ScanType<T>>();
    TL_UNROLL_LITTLE
    for (int i = 0; i < ToLines::length; ++i) {
      total = Op::combine(total, convert<ScanType<T>>(FromLines::at(from, line, i)));
      ToLines::at(to, line, i) = convert<T>(total);
    }
  }
}
// Each warp scans one row or column, one element per lane, in log2(warp_size) steps per warp_size elements.
template <class Op, int threads, class FromLines, class ToLines, class From, class To>
TL_DEVICE void scan_by_warps(const From& from, To& to) {
  using T = typename To::type;
  using Wide = ScanType<T>;
  static_assert(threads % warp_size == 0, "whole warps scan");
  TL_NO_UNROLL
  for (int line = warp(); line < ToLines::count; line += threads / warp_size) {
    Wide total = Op::template identity<Wide>();
    TL_NO_UNROLL
    for (int first = 0; first < ToLines::length; first += warp_size) {
      const int i = first + lane();
      Wide x = Op::template identity<Wide>();
      if (i < ToLines::length) x = convert<Wide>(FromLines::at(from, line, i));
      TL_UNROLL
      for (int delta = 1; delta < warp_size; delta *= 2) {
        const Wide before = shuffle_up(x, delta);
        if (lane() >= delta) x = Op::combine(before, x);
      }
      x = Op::combine(total, x);
      if (i < ToLines::length) ToLines::at(to, line, i) = convert<T>(x);
      total = shuffle(x, warp_size - 1);
    }
  }
}

template <class Op, int dim, bool reversed, int threads, class From, class To>
TL_DEVICE void scan_tile(const From& from, To& to) {
  static_assert(From::rank == To::rank && From::rows == To::rows && From::cols == To::cols,
                "both tiles have the same shape");
  using FromLines = ScanLines<From, dim, reversed>;
  using ToLines = ScanLines<To, dim, reversed>;
  if constexpr (To::rank == 2 && dim == 0 && ToLines::count >= warp_size)
    scan_by_threads<Op, threads, FromLines, ToLines>(from, to);
  else
    scan_by_warps<Op, threads, FromLines, ToLines>(from, to);
}
template <class Op, int dim, bool reversed, int threads, class From, class To, class Workspace>
TL_DEVICE void scan_fragment(const From& from, To& to, Workspace& workspace) {
  sync_threads();  // all reads of an earlier scan are complete
  copy(from, workspace.tile);
  sync_threads();  // the whole tile is visible
  scan_tile<Op, dim, reversed, threads>(workspace.tile, workspace.tile);
  sync_threads();  // the scan is complete
  copy(workspace.tile, to);
}

#define TL_SCAN(name, Op, reversed)                                                                         \
  template <int dim, int threads, class From, class To>                                                     \
  TL_DEVICE std::enable_if_t<is_shared_tile<From> && is_shared_tile<To>> name(const From& from, To& to) {   \
    scan_tile<Op, dim, reversed, threads>(from, to);                                                        \
  }                                                                                                         \
  template <int dim, int threads, class T, class L, class U, class M, int... extents>                       \
  TL_DEVICE void name(const Fragment<T, L>& from, Fragment<U, M>& to, ScanWorkspace<U, extents...>& work) { \
    scan_fragment<Op, dim, reversed, threads>(from, to, work);                                              \
  }
// cumsum<dim, threads>(from, to, workspace): fragments of one or two dimensions and the same shape, in any layouts;
// `from` may be `to`. Elements are converted to the type of `to` first. Contains barriers. Called by: all `threads`
// threads of the block.
// cumsum<dim, threads>(from, to): shared tiles; `from` may be `to`. Contains no barrier: tl::sync_threads precedes and
// follows it. Called by: `threads` threads from thread 0 on, in whole warps.
// Sums of 16-bit types are accumulated in float and rounded once. In cummax, if one operand is NaN, the result is the
// other.
TL_SCAN(cumsum, ReduceSum, false)
TL_SCAN(cumsum_reversed, ReduceSum, true)
TL_SCAN(cummax, ReduceMax, false)
TL_SCAN(cummax_reversed, ReduceMax, true)
#undef TL_SCAN

}  // namespace tl
