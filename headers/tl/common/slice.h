// Slice layouts: one value per row or per column of a layout; for three dimensions, one per (i, j) of the first two.
// Layouts with equal rows have the same slice type, independent of their columns.
#pragma once
#include "blocked.h"
#include "replicated.h"

namespace tl {

template <int dim, class Layout> struct SliceOf;
template <class Layout> struct SliceOf<0, Layout> {
  using type = typename Layout::cols;
};
template <class Layout> struct SliceOf<1, Layout> {
  using type = typename Layout::rows;
};
template <class Layout> struct SliceOf<2, Layout> {
  using type = typename Layout::planes;
};

// A layout without its dimension `dim`: the layout of a reduction over that dimension. The threads that shared the
// dimension hold copies.
template <int dim, class Layout> using Slice = typename SliceOf<dim, Layout>::type;

}  // namespace tl
