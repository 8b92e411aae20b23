// What a layout is.
//
// A layout is a type that says which thread of the block holds which elements of a tile, in which register:
//   rank, registers         dimensions of the tile; registers of each thread
//   vector                  so many registers in a row hold consecutive elements of the last dimension
//   coordinate<dim>(reg)    where the element in register `reg` of this thread lies
//   valid(reg)              false for registers that are left over because the tile does not fill them
//   replica()               0 in the threads that store; other threads hold copies of what one of those holds
//   spread(0)               with one dimension, which threads its elements lie in
// and with two dimensions:
//   rows, cols              the layouts of one value a row and one value a column (tl::RowsOf, tl::ColsOf)
//   row_register(reg), col_register(reg)    the register of those that belongs to register `reg`
//   spread(dim)             which threads share a row (dim 1) or a column (dim 0)
// and with three: planes, plane_register(reg), spread(2), the same for one value for each place of the first two.
// Comments give layouts in CuTe's notation: (threads, values) -> (coordinates), with shapes and strides where it helps.
#pragma once
#include "shape.h"

namespace tl {

// The threads that share a row or a column: every `lane_stride`-th lane, `lanes` of them (a power of two), and of such
// groups `warps`, each in every `warp_stride`-th warp. With a `thread_stride` the groups follow one another at that
// distance instead, several in a warp.
struct Spread {
  int lane_stride, lanes, warp_stride, warps, thread_stride = 0;
};

// Which of the groups this thread belongs to.
TL_DEVICE int part_of(const Spread& spread) {
  if (spread.thread_stride > 0)
    return static_cast<int>(unsigned(thread()) / unsigned(spread.thread_stride) % unsigned(spread.warps));
  return warp() / spread.warp_stride % spread.warps;
}

// `threads` threads, every `stride`-th of the block. Lanes exchange by flipping bits of their number, so that of a row
// that is no power of two wide, or whose lanes stand at other distances, only the aligned part does.
TL_BOTH constexpr Spread spread_of(int stride, int threads) {
  const bool flips = stride < warp_size && power_of_two_in(stride) == stride;
  const int lanes = flips ? smaller(power_of_two_in(threads), warp_size / stride) : 1;
  return {flips ? stride : 1, lanes, 1, threads / lanes, stride * lanes};
}

}  // namespace tl
