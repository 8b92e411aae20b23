// Reductions of rows (dim 1) or columns (dim 0) of fragments and shared tiles to one value per row or column, and of
// three-dimensional fragments along the last dimension (dim 2).
#pragma once
#include "copy.h"
#include "math.h"

namespace tl {

// An additional argument of the reductions: combines the result with the previous value of `to`.
enum Accumulate { accumulate };

// Shared memory for reductions of rows that several warps share: `extent` results with `warps` partial results each.
// With `threads` > 0 only the first `threads` threads of the block take part, without the producer warps after them.
// With `ordered` no barrier has to order the stores after the loads of an earlier reduction through it: there is none,
// or other barriers of all threads are between the two.
constexpr int all_threads = 0;
constexpr bool ordered = true;
template <class T, int extent, int warps, int threads = all_threads, bool ordered = false> struct ReduceWorkspace {
  T part[warps][extent];
};
template <int threads> TL_DEVICE void sync_consumers();  // sm90/tma_pipeline.h
// A barrier of the threads that share a workspace.
template <int threads> TL_DEVICE void sync_workspace() {
  if constexpr (threads > 0)
    sync_consumers<threads>();
  else
    sync_threads();
}

// The limits of a type's range; infinities if it has them.
template <class T> TL_DEVICE T highest() {
  if constexpr (is_float<T>)
    return convert<T>(infinity<T>);
  else
    return static_cast<T>(~uint64_t(0) >> (64 - 8 * sizeof(T) + (std::is_signed<T>::value ? 1 : 0)));
}
template <class T> TL_DEVICE T lowest() {
  if constexpr (is_float<T>)
    return convert<T>(-infinity<T>);
  else
    return static_cast<T>(~highest<T>());  // two's complement
}

// Reduction operators: the identity, the contribution of an element, and the combination of two values.
struct ReduceSum {
  template <class T> static TL_DEVICE T identity() { return T(0); }
  template <class T> static TL_DEVICE T of(T x) { return x; }
  template <class T> static TL_DEVICE T combine(T a, T b) { return a + b; }
};
struct ReduceAbsSum : ReduceSum {
  template <class T> static TL_DEVICE T of(T x) { return Abs{}(x); }
};
struct ReduceMax {
  template <class T> static TL_DEVICE T identity() { return lowest<T>(); }
  template <class T> static TL_DEVICE T of(T x) { return x; }
  template <class T> static TL_DEVICE T combine(T a, T b) { return Max{}(a, b); }
};
struct ReduceMin {
  template <class T> static TL_DEVICE T identity() { return highest<T>(); }
  template <class T> static TL_DEVICE T of(T x) { return x; }
  template <class T> static TL_DEVICE T combine(T a, T b) { return Min{}(a, b); }
};
// For integers and bool.
struct ReduceBitAnd {
  template <class T> static TL_DEVICE T identity() { return static_cast<T>(~T(0)); }
  template <class T> static TL_DEVICE T of(T x) { return x; }
  template <class T> static TL_DEVICE T combine(T a, T b) { return static_cast<T>(a & b); }
};
struct ReduceBitOr {
  template <class T> static TL_DEVICE T identity() { return T(0); }
  template <class T> static TL_DEVICE T of(T x) { return x; }
  template <class T> static TL_DEVICE T combine(T a, T b) { return static_cast<T>(a | b); }
};
struct ReduceBitXor : ReduceBitOr {
  template <class T> static TL_DEVICE T combine(T a, T b) { return static_cast<T>(a ^ b); }
};
struct ReduceAbsMax : ReduceMax {
  template <class T> static TL_DEVICE T identity() { return T(0); }
  template <class T> static TL_DEVICE T of(T x) { return Abs{}(x); }
};

// The same, but NaN if any operand is NaN.
template <class Op> struct OrNan : Op {
  template <class T> static TL_DEVICE T combine(T a, T b) { return isnan(a) ? a : isnan(b) ? b : Op::combine(a, b); }
};

// The layout of the results; for a one-dimensional fragment one value that every thread holds.
template <class Layout, int dim, int rank> struct Reduced {
  static_assert(rank == 1, "three-dimensional fragments are reduced along the last dimension");
  using type = Replicated<Shape<1>>;
};
template <class Layout> struct Reduced<Layout, 1, 2> {
  using type = typename Layout::rows;
};
template <class Layout> struct Reduced<Layout, 0, 2> {
  using type = typename Layout::cols;
};
template <class Layout> struct Reduced<Layout, 2, 3> {
  using type = typename Layout::planes;
};
template <class Layout, int dim> using ReducedLayout = typename Reduced<Layout, dim, Layout::rank>::type;

// The index of the result in register r.
template <class ResultLayout> TL_DEVICE int result_index(int r) {
  if constexpr (ResultLayout::rank == 2)
    return ResultLayout::template coordinate<0>(r) * ResultLayout::N + ResultLayout::template coordinate<1>(r);
  else
    return ResultLayout::template coordinate<0>(r);
}

// The register of the result to which element r of the fragment contributes.
template <int dim, class Layout> TL_DEVICE constexpr int result_register(int r) {
  if constexpr (Layout::rank == 1)
    return 0;
  else if constexpr (dim == 2)
    return Layout::plane_register(r);
  else if constexpr (dim == 1)
    return Layout::row_register(r);
  else
    return Layout::col_register(r);
}

// The number of consecutive registers that hold consecutive elements of the last dimension; 1 if the layout does not
// define it.
template <class Layout, class = void> constexpr int neighbours = 1;
template <class Layout> constexpr int neighbours<Layout, std::void_t<decltype(Layout::vector)>> = Layout::vector;

// Sums of half in half use packed additions: even and odd elements are accumulated separately, and then added.
template <class Op, int dim, class T, class U, class Layout>
constexpr bool adds_in_pairs = std::is_same<Op, ReduceSum>::value && std::is_same<T, half>::value &&
                               std::is_same<U, half>::value && dim == Layout::rank - 1 && neighbours<Layout> % 2 == 0;
template <int dim, class Layout, class ResultLayout>
TL_DEVICE void sum_pairs(const Fragment<half, Layout>& from, Fragment<half, ResultLayout>& to) {
  uint32_t sums[ResultLayout::registers] = {};
  bool begun[ResultLayout::registers] = {};  // constant after unrolling
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += 2) {
    if (!Layout::valid(r)) continue;
    const int result = result_register<dim, Layout>(r);
    const uint32_t pair = pack_bits(from.reg[r], from.reg[r + 1]);
    sums[result] = begun[result] ? add2(sums[result], pair, half()) : pair;
    begun[result] = true;
  }
  TL_UNROLL
  for (int result = 0; result < ResultLayout::registers; ++result) {
    const auto both = bit_cast<Vec<half, 2>>(sums[result]);
    to.reg[result] = both.at[0] + both.at[1];
  }
}

// Step 1: reduces the elements of this thread.
template <class Op, int dim, class T, class Layout, class U, class ResultLayout>
TL_DEVICE void reduce_own(const Fragment<T, Layout>& from, Fragment<U, ResultLayout>& to) {
  if constexpr (adds_in_pairs<Op, dim, T, U, Layout>) {
    sum_pairs<dim>(from, to);
  } else {
    fill(to, Op::template identity<U>());
    TL_UNROLL
    for (int r = 0; r < Layout::registers; ++r) {
      U& result = to.reg[result_register<dim, Layout>(r)];
      if (Layout::valid(r)) result = Op::combine(result, Op::of(convert<U>(from.reg[r])));
    }
  }
}

// Step 2: butterfly reduction over the lanes that share a row or column of this layout; all of them have the result.
template <class Op, class Layout, int dim, class U, class ResultLayout>
TL_DEVICE void combine_lanes(Fragment<U, ResultLayout>& to) {
  constexpr Spread spread = Layout::spread(dim);
  static_assert((spread.lanes & (spread.lanes - 1)) == 0, "the number of lanes that share a row is a power of two");
  TL_UNROLL
  for (int mask = spread.lane_stride; mask < spread.lane_stride * spread.lanes; mask *= 2) TL_UNROLL
  for (int r = 0; r < ResultLayout::registers; ++r) to.reg[r] = Op::combine(to.reg[r], shuffle_xor(to.reg[r], mask));
}
template <class Op, int dim, class T, class Layout, class U, class ResultLayout>
TL_DEVICE void reduce_in_warp(const Fragment<T, Layout>& from, Fragment<U, ResultLayout>& to) {
  reduce_own<Op, dim>(from, to);
  combine_lanes<Op, Layout, dim>(to);
}

// Step 3: combines the partial results of several warps through shared memory. Called by: every thread of the block, or
// of the workspace.
template <class Op, int dim, class Layout, class U, class ResultLayout, int extent, int warps, int threads,
          bool ordered>
TL_DEVICE void reduce_over_warps(Fragment<U, ResultLayout>& to,
                                 ReduceWorkspace<U, extent, warps, threads, ordered>& workspace) {
  constexpr Spread spread = Layout::spread(dim);
  static_assert(spread.warps == warps,
                "the workspace has a part for each group of lanes that shares a row: spread(dim).warps");
  const int part = part_of(spread);
  const bool speaks = Layout::replica() == 0 && lane() / spread.lane_stride % spread.lanes == 0;
  if constexpr (!ordered) sync_workspace<threads>();  // all reads of an earlier reduction are complete
  TL_UNROLL
  for (int r = 0; r < ResultLayout::registers; ++r)
    if (speaks && ResultLayout::valid(r)) workspace.part[part][result_index<ResultLayout>(r)] = to.reg[r];
  sync_workspace<threads>();  // all partial results are visible
  TL_UNROLL
  for (int r = 0; r < ResultLayout::registers; ++r) {
    if (!ResultLayout::valid(r)) continue;
    to.reg[r] = workspace.part[0][result_index<ResultLayout>(r)];
    TL_UNROLL
    for (int w = 1; w < warps; ++w)
      to.reg[r] = Op::combine(to.reg[r], workspace.part[w][result_index<ResultLayout>(r)]);
  }
}

struct NoWorkspace {};

template <class Op, int dim, bool accumulates, class T, class Layout, class U, class ResultLayout, class Workspace>
TL_DEVICE void reduce(const Fragment<T, Layout>& from, Fragment<U, ResultLayout>& to, Workspace& workspace) {
  static_assert(std::is_same<ResultLayout, ReducedLayout<Layout, dim>>::value,
                "the result holds one value per row (dim 1) or column (dim 0) of the fragment's layout");
  constexpr Spread spread = Layout::spread(dim);
  constexpr bool has_workspace = !std::is_same<Workspace, NoWorkspace>::value;
  static_assert(spread.warps == 1 || has_workspace,
                "several warps or groups of lanes share a row: a tl::ReduceWorkspace is needed");
  Fragment<U, ResultLayout> result;
  reduce_in_warp<Op, dim>(from, result);
  if constexpr (spread.warps > 1 && has_workspace) reduce_over_warps<Op, dim, Layout>(result, workspace);
  TL_UNROLL
  for (int r = 0; r < ResultLayout::registers; ++r)
    to.reg[r] = accumulates ? Op::combine(to.reg[r], result.reg[r]) : result.reg[r];
}

// ---- shared tiles ------------------------------------------------------------------------------------------------

// Reduces the elements `first`, `first + step`, ... of a row or column of a shared tile.
template <class Op, int dim, class U, class Tile>
TL_DEVICE U reduce_line(const Tile& tile, int line, int first, int step) {
  constexpr int length = Tile::rank == 1 || dim == 1 ? Tile::cols : Tile::rows;
  U result = Op::template identity<U>();
  TL_UNROLL_LITTLE
  for (int i = first; i < length; i += step) {
    if constexpr (Tile::rank == 1)
      result = Op::combine(result, Op::of(convert<U>(tile(i))));
    else
      result = Op::combine(result, Op::of(convert<U>(dim == 1 ? tile(line, i) : tile(i, line))));
  }
  return result;
}
// All-reduce over a warp.
template <class Op, class U> TL_DEVICE U reduce_lanes(U x) {
  TL_UNROLL
  for (int mask = 1; mask < warp_size; mask *= 2) x = Op::combine(x, shuffle_xor(x, mask));
  return x;
}
// Each thread reads whole rows or columns, those of the results that it holds. A one-dimensional tile is read by each
// warp.
template <class Op, int dim, bool accumulates, class Tile, class U, class ResultLayout>
TL_DEVICE void reduce_tile(const Tile& from, Fragment<U, ResultLayout>& to) {
  static_assert(ResultLayout::rank == 1, "one value per row or column of the tile");
  TL_UNROLL
  for (int r = 0; r < ResultLayout::registers; ++r) {
    if (!ResultLayout::valid(r)) continue;
    U result;
    if constexpr (Tile::rank == 1)
      result = reduce_lanes<Op>(reduce_line<Op, 0, U>(from, 0, lane(), warp_size));
    else
      result = reduce_line<Op, dim, U>(from, result_index<ResultLayout>(r), 0, 1);
    to.reg[r] = accumulates ? Op::combine(to.reg[r], result) : result;
  }
}
// To shared memory: each warp reduces a row or column at a time.
template <class Op, int dim, bool accumulates, int threads, class Tile, class U, int n>
TL_DEVICE void reduce_tile(const Tile& from, SharedTile1D<U, n>& to) {
  constexpr int lines = Tile::rank == 1 ? 1 : dim == 1 ? Tile::rows : Tile::cols;
  static_assert(n == lines, "one value per row or column of the tile");
  static_assert(threads % warp_size == 0, "whole warps reduce");
  TL_NO_UNROLL
  for (int line = warp(); line < lines; line += threads / warp_size) {
    const U result = reduce_lanes<Op>(reduce_line<Op, dim, U>(from, line, lane(), warp_size));
    if (lane() == 0) to(line) = accumulates ? Op::combine(to(line), result) : result;
  }
}
template <class Op, int dim, bool accumulates, int threads, class Tile, class U, class ResultLayout>
TL_DEVICE void reduce_tile(const Tile& from, Fragment<U, ResultLayout>& to) {
  reduce_tile<Op, dim, accumulates>(from, to);
}

// ---- public functions ---------------------------------------------------------------------------------------------

#define TL_REDUCTION(name, Op)                                                                                    \
  template <int dim, class From, class To> TL_DEVICE void name(const From& from, To& to) {                        \
    NoWorkspace none;                                                                                             \
    reduce<Op, dim, false>(from, to, none);                                                                       \
  }                                                                                                               \
  template <int dim, class From, class To> TL_DEVICE void name(const From& from, To& to, Accumulate) {            \
    NoWorkspace none;                                                                                             \
    reduce<Op, dim, true>(from, to, none);                                                                        \
  }                                                                                                               \
  template <int dim, class From, class To, class U, int extent, int warps, int threads, bool ordered>             \
  TL_DEVICE void name(const From& from, To& to, ReduceWorkspace<U, extent, warps, threads, ordered>& workspace) { \
    reduce<Op, dim, false>(from, to, workspace);                                                                  \
  }                                                                                                               \
  template <int dim, class From, class To, class U, int extent, int warps, int threads, bool ordered>             \
  TL_DEVICE void name(const From& from, To& to, Accumulate,                                                       \
                      ReduceWorkspace<U, extent, warps, threads, ordered>& workspace) {                           \
    reduce<Op, dim, true>(from, to, workspace);                                                                   \
  }                                                                                                               \
  template <int dim, int threads, class Tile, class To>                                                           \
  TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> name(const Tile& from, To& to) {                               \
    reduce_tile<Op, dim, false, threads>(from, to);                                                               \
  }                                                                                                               \
  template <int dim, int threads, class Tile, class To>                                                           \
  TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> name(const Tile& from, To& to, Accumulate) {                   \
    reduce_tile<Op, dim, true, threads>(from, to);                                                                \
  }
// reduce_max<dim>(from, to [, tl::accumulate] [, workspace]), and likewise the others: `from` is a fragment. The
// results have the type of `to`, and every thread that holds a part of the row has its result. Called by: every thread
// of the block, or of the workspace.
// reduce_max<dim, threads>(shared_tile, to [, tl::accumulate]): `to` is a fragment in any layout of one value per row
// or column, or a one-dimensional shared tile, which `threads` threads from thread 0 on write. Reads shared memory
// without a barrier.
TL_REDUCTION(reduce_sum, ReduceSum)
TL_REDUCTION(reduce_max, ReduceMax)
TL_REDUCTION(reduce_min, ReduceMin)
TL_REDUCTION(reduce_absmax, ReduceAbsMax)
TL_REDUCTION(reduce_max_or_nan, OrNan<ReduceMax>)
TL_REDUCTION(reduce_min_or_nan, OrNan<ReduceMin>)
TL_REDUCTION(reduce_absmax_or_nan, OrNan<ReduceAbsMax>)
TL_REDUCTION(reduce_abssum, ReduceAbsSum)
TL_REDUCTION(reduce_bitand, ReduceBitAnd)
TL_REDUCTION(reduce_bitor, ReduceBitOr)
TL_REDUCTION(reduce_bitxor, ReduceBitXor)
#undef TL_REDUCTION

// reduce_sum in two steps, for rows that one warp holds. thread_reduce_sum reduces the elements of each thread.
// warp_allreduce_sum reduces these partial sums over the lanes that share a row of `Layout`. Between the steps partial
// sums may be accumulated, or multiplied by a factor that is uniform over a row. Called by: whole warps.
template <int dim, class From, class To> TL_DEVICE void thread_reduce_sum(const From& from, To& to) {
  reduce_own<ReduceSum, dim>(from, to);
}
template <class Layout, int dim, class To> TL_DEVICE void warp_allreduce_sum(To& to) {
  static_assert(Layout::spread(dim).warps == 1, "one warp holds a row");
  combine_lanes<ReduceSum, Layout, dim>(to);
}

// All-reduce of one value per lane over the warp. Called by: every lane of the warp.
template <class T> TL_DEVICE T warp_reduce_sum(T x) { return reduce_lanes<ReduceSum>(x); }
template <class T> TL_DEVICE T warp_reduce_max(T x) { return reduce_lanes<ReduceMax>(x); }
template <class T> TL_DEVICE T warp_reduce_min(T x) { return reduce_lanes<ReduceMin>(x); }
template <class T> TL_DEVICE T warp_reduce_bitand(T x) { return reduce_lanes<ReduceBitAnd>(x); }
template <class T> TL_DEVICE T warp_reduce_bitor(T x) { return reduce_lanes<ReduceBitOr>(x); }
template <class T> TL_DEVICE T warp_reduce_bitxor(T x) { return reduce_lanes<ReduceBitXor>(x); }

}  // namespace tl
