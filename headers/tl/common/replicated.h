// Replicated layout: every thread holds all elements.
#pragma once
#include "shape.h"

namespace tl {

template <class Extents> struct Replicated {
  static constexpr int rank = Extents::rank, registers = Extents::size, vector = 1;
  template <int dim> static TL_DEVICE constexpr int coordinate(int reg) {
    int inner = 1;
    for (int d = dim + 1; d < rank; ++d) inner *= Extents::extent(d);
    return reg / inner % Extents::extent(dim);
  }
  // The register of the element at these coordinates.
  template <class... I> static TL_DEVICE constexpr int register_of(I... i) {
    static_assert(sizeof...(I) == rank, "as many indices as the fragment has dimensions");
    const int at[] = {static_cast<int>(i)...};
    int reg = 0;
    for (int d = 0; d < rank; ++d) {
      TL_CHECK_INDEX(at[d], Extents::extent(d));
      reg = reg * Extents::extent(d) + at[d];
    }
    return reg;
  }
  static TL_DEVICE constexpr bool valid(int) { return true; }
  static TL_DEVICE int replica() { return thread(); }
};
template <class Layout> struct IsReplicated {
  static constexpr bool value = false;
};
template <class Extents> struct IsReplicated<Replicated<Extents>> {
  static constexpr bool value = true;
};

}  // namespace tl
