// Extents as types, and the words that stand for "everything along this dimension".
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

// Warps along the rows and the columns of a tile; warp w is (w / n, w % n).
template <int m_, int n_> struct Warps {
  static constexpr int m = m_, n = n_;
};

// A(i, tl::all) keeps the second dimension.
enum All { all };

}  // namespace tl
