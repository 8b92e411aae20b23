// One value a row, or a column, of a layout. Layouts with equal rows share one type, whatever their columns.
#pragma once
#include "blocked.h"
#include "replicated.h"

namespace tl {

template <class Layout> using RowsOf = typename Layout::rows;
template <class Layout> using ColsOf = typename Layout::cols;

}  // namespace tl
