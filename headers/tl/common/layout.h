// What a layout is.
//
// A layout is a type that says which thread of the block holds which elements of a tile, in which register:
//   rank, registers         dimensions of the tile; registers of each thread
//   vector                  so many registers in a row hold consecutive elements of the last dimension
//   coordinate<dim>(reg)    where the element in register `reg` of this thread lies
//   valid(reg)              false for registers that are left over because the tile does not fill them
//   replica()               0 in the threads that store; other threads hold copies of what one of those holds
// and with two dimensions:
//   rows, cols              the layouts of one value a row and one value a column (tl::RowsOf, tl::ColsOf)
//   row_register(reg), col_register(reg)    the register of those that belongs to register `reg`
//   spread(dim)             which threads share a row (dim 1) or a column (dim 0)
// Comments give layouts in CuTe's notation: (threads, values) -> (coordinates), with shapes and strides where it helps.
#pragma once
#include "shape.h"

namespace tl {

// The threads that share a row or a column: every `lane_stride`-th lane, `lanes` of them, and every `warp_stride`-th
// warp, `warps` of them.
struct Spread {
  int lane_stride, lanes, warp_stride, warps;
};

// `threads` threads, every `stride`-th of the block, as lanes and warps.
TL_BOTH constexpr Spread spread_of(int stride, int threads) {
  if (stride >= warp_size) return {1, 1, stride / warp_size, threads};
  const int lanes = smaller(threads, warp_size / stride);
  return {stride, lanes, 1, threads / lanes};
}

}  // namespace tl
