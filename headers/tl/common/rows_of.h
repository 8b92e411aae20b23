// One value a row, or a column, of a layout; of one with three dimensions, one value for each place of the first two.
// Layouts with equal rows share one type, whatever their columns.
#pragma once
#include "blocked.h"
#include "replicated.h"

namespace tl {

template <class Layout> using RowsOf = typename Layout::rows;
template <class Layout> using ColsOf = typename Layout::cols;
template <class Layout> using PlanesOf = typename Layout::planes;

}  // namespace tl
