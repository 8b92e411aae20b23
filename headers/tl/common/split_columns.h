// The columns of a tensor core accumulator, split into groups.
#pragma once
#include "layout.h"

namespace tl {

// One value per row and group, in each thread that holds a part of the group.
template <class Of, int width> struct SplitPlanes {
  static constexpr int warp_cols = Of::cols::registers * 4;                 // four lanes hold a row
  static constexpr int groups = width < warp_cols ? warp_cols / width : 1;  // per warp
  static constexpr int warps = width < warp_cols ? 1 : width / warp_cols;   // warps that share a group, at this stride:
  static constexpr int warp_stride = Of::spread(1).warp_stride;
  static constexpr int rank = 2, M = Of::M, N = Of::N / width, vector = 1;
  static constexpr int registers = Of::rows::registers * groups;
  static_assert(width % 8 == 0 && (warp_cols % width == 0 || width % warp_cols == 0),
                "a group is a multiple of 8 columns, and a multiple or a divisor of a warp's columns");

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    if constexpr (dim == 0)
      return Of::rows::template coordinate<0>(reg / groups);
    else
      return Of::template coordinate<1>(0) / width + reg % groups;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return Of::replica() + lane() % 4 + warp() / warp_stride % warps; }
};

// (row, group, column in the group), in the registers of layout Of.
template <class Of, int width> struct SplitColumns {
  using planes = SplitPlanes<Of, width>;
  static constexpr int rank = 3, registers = Of::registers, vector = 1;
  static constexpr int L = Of::M, M = Of::N / width, N = width;

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    if constexpr (dim == 0)
      return Of::template coordinate<0>(reg);
    else
      return dim == 1 ? Of::template coordinate<1>(reg) / width : Of::template coordinate<1>(reg) % width;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return Of::replica(); }
  // The columns of a warp start at a group boundary, or are within one group.
  static TL_DEVICE constexpr int plane_register(int reg) {
    return Of::row_register(reg) * planes::groups + Of::col_register(reg) * 4 / width % planes::groups;
  }
  // The threads that share a group of a row.
  TL_BOTH static constexpr Spread spread(int dim) {
    return dim == 2 ? Spread{1, 4, planes::warp_stride, planes::warps} : Of::spread(0);
  }
};

}  // namespace tl
