// Rescales of MFMA accumulators that a wave may skip.
#pragma once
#include "../fragment.h"
#include "mfma_accumulator.h"

namespace tl {

// Multiplies the rows of an accumulator by `factor` where `wanted` holds, which is the same for all lanes of the wave.
// The values of an instruction are one vector: of single values that are merged behind the branch, clang 19 copies all
// to other registers in each iteration. Called by: whole waves.
template <class Layout, class Rows>
TL_DEVICE void scale_rows_if(bool wanted, Fragment<float, Layout>& fragment, const Fragment<float, Rows>& factor) {
  using Values = float __attribute__((vector_size(16)));  // of one instruction with runs of 4
  constexpr int run = 4, count = Layout::Interleave::count, runs = Layout::Shape::items / run;
  constexpr int per_row = Layout::n_groups * runs * count;
  static_assert(Layout::Shape::run == run && Rows::registers == Layout::m_tiles, "a factor per row of the wave's tile");
  const auto place = [](int n, int item) {
    const int in_row = n % per_row, t = in_row % count, q = in_row / count % runs, group = in_row / (count * runs);
    return Layout::register_of(n / per_row, group, t, q * run + item);
  };
  Values values[Layout::m_tiles * per_row];
  TL_UNROLL
  for (int n = 0; n < Layout::m_tiles * per_row; ++n) TL_UNROLL
  for (int item = 0; item < run; ++item) values[n][item] = fragment.reg[place(n, item)];
  if (wanted) TL_UNROLL
  for (int n = 0; n < Layout::m_tiles * per_row; ++n) values[n] *= factor.reg[n / per_row];
  TL_UNROLL
  for (int n = 0; n < Layout::m_tiles * per_row; ++n) TL_UNROLL
  for (int item = 0; item < run; ++item) fragment.reg[place(n, item)] = values[n][item];
}

}  // namespace tl
