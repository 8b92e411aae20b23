// Layouts.
//
// A layout is a type that maps the elements of a tile to threads of the block and registers:
//   rank, registers         dimensions of the tile; registers per thread
//   vector                  this many consecutive registers hold consecutive elements of the last dimension
//   coordinate<dim>(reg)    coordinate of the element in register `reg` of this thread
//   valid(reg)              false for registers beyond the extents of the tile
//   replica()               0 in the threads that store; other threads hold copies of the elements of one of those
//   spread(0)               rank 1: the threads that hold the elements
// Rank 2 also has:
//   rows, cols              the layouts of one value per row (tl::Slice<1, L>) and per column (tl::Slice<0, L>)
//   row_register(reg), col_register(reg)    the register of `rows` or `cols` that corresponds to register `reg`
//   spread(dim)             the threads that share a row (dim 1) or a column (dim 0)
// Rank 3 has planes, plane_register(reg) and spread(2), for one value per coordinate of the first two dimensions.
// Comments give layouts in CuTe's notation: (threads, values) -> (coordinates), with shapes and strides where it helps.
#pragma once
#include "shape.h"

namespace tl {

// The threads that share a row or a column. Within a warp: `lanes` lanes (a power of two) at a stride of `lane_stride`.
// Across warps: `warps` such groups, at a stride of `warp_stride` warps. If `thread_stride` is positive, the groups are
// `thread_stride` threads apart instead, and one warp may have several.
struct Spread {
  int lane_stride, lanes, warp_stride, warps, thread_stride = 0;
};

// The index of this thread's group.
TL_DEVICE int part_of(const Spread& spread) {
  if (spread.thread_stride > 0)
    return static_cast<int>(unsigned(thread()) / unsigned(spread.thread_stride) % unsigned(spread.warps));
  return warp() / spread.warp_stride % spread.warps;
}

// `threads` threads at a stride of `stride`. The lanes of a group exchange by XOR shuffles, so their number is the
// largest power of two that divides `threads`, within a warp; 1 unless `stride` is a power of two below warp_size.
TL_BOTH constexpr Spread spread_of(int stride, int threads) {
  const bool flips = stride < warp_size && power_of_two_in(stride) == stride;
  const int lanes = flips ? smaller(power_of_two_in(threads), warp_size / stride) : 1;
  return {flips ? stride : 1, lanes, 1, threads / lanes, stride * lanes};
}

}  // namespace tl
