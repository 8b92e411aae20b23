// Extents as types, and the placeholder for all indices of a dimension.
#pragma once
#include "base.h"

namespace tl {

template <int... extents> struct Shape {
  static constexpr int rank = sizeof...(extents);
  static constexpr int size = (extents * ... * 1);
  TL_BOTH static constexpr int extent(int dim) {
    constexpr int all_extents[] = {extents...};
    return all_extents[dim];
  }
};

// The warps along the rows and the columns of a tile; warp w has the coordinates (w / n, w % n).
template <int m_, int n_> struct Warps {
  static constexpr int m = m_, n = n_;
};

// A(i, tl::all) keeps the second dimension.
enum All { all };

}  // namespace tl
