// Blocked layouts: neighbouring threads hold neighbouring elements. For loops and copies that no instruction
// constrains.
#pragma once
#include "layout.h"

namespace tl {

// Partitions `extent` elements over `threads` threads. Each thread holds `vector` consecutive elements, and the pattern
// repeats until it covers the extent: (T,(V,R)) -> (extent)  (vector,(1,threads*vector)). Consecutive T are
// `thread_stride` threads of the block apart; all threads with the same T hold copies. Coordinates beyond the extent
// are not valid.
template <int extent_, int threads, int thread_stride, int vector_> struct BlockedAxis {
  static constexpr int rank = 1, vector = vector_, extent = extent_, period = threads * vector;
  static constexpr int registers = (extent + period - 1) / period * vector;
  static_assert(extent % vector == 0, "vectors divide the extent: regenerate the file for other extents");
  // Unsigned arithmetic: thread indices are not negative, so division and remainder need no sign correction.
  static TL_DEVICE int place() { return static_cast<int>(unsigned(thread()) / thread_stride % threads); }
  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return reg / vector * period + place() * vector + reg % vector;
  }
  static TL_DEVICE bool valid(int reg) {  // one test per vector
    return extent % period == 0 || (reg / vector + 1) * period <= extent ||
           coordinate<0>(reg / vector * vector) < extent;
  }
  static TL_DEVICE int replica() {
    const unsigned t = thread();
    return static_cast<int>(t % thread_stride + t / (thread_stride * threads) * thread_stride);
  }
  TL_BOTH static constexpr Spread spread(int) { return spread_of(thread_stride, threads); }
  // The axis has one row, itself.
  static TL_DEVICE constexpr int row_register(int) { return 0; }
};

// Threads are row-major over the last dimensions, and each holds `vector` elements of the last dimension. The pattern
// repeats over the extents, and registers are row-major over the repeats. If `Threads` has fewer threads than the
// block, the other threads hold copies. In two dimensions a thread may hold `rows` consecutive rows per repeat.
template <class Extents, class Threads, int vector = 1, int rows = 1> struct Blocked;

template <int extent, int threads, int vector>
struct Blocked<Shape<extent>, Shape<threads>, vector> : BlockedAxis<extent, threads, 1, vector> {};

template <int M_, int N_, int m, int n, int vector_, int rows_>
struct Blocked<Shape<M_, N_>, Shape<m, n>, vector_, rows_> {
  using rows = BlockedAxis<M_, m, n, rows_>;
  using cols = BlockedAxis<N_, n, 1, vector_>;
  static constexpr int rank = 2, M = M_, N = N_, vector = vector_, registers = rows::registers * cols::registers;

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? rows::template coordinate<0>(row_register(reg)) : cols::template coordinate<0>(col_register(reg));
  }
  static TL_DEVICE constexpr int row_register(int reg) { return reg / cols::registers; }
  static TL_DEVICE constexpr int col_register(int reg) { return reg % cols::registers; }
  static TL_DEVICE bool valid(int reg) { return rows::valid(row_register(reg)) && cols::valid(col_register(reg)); }
  static TL_DEVICE int replica() { return static_cast<int>(unsigned(thread()) / (m * n)); }
  // The threads that share a row (dim 1 varies) or a column (dim 0 varies).
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? spread_of(1, n) : spread_of(n, m); }
};

// One value per coordinate of the first two dimensions of an L x M x N layout; n neighbouring threads hold copies.
template <int L, int M_, int l, int m, int n> struct BlockedPlanes {
  using rows = BlockedAxis<L, l, m * n, 1>;
  using cols = BlockedAxis<M_, m, n, 1>;
  static constexpr int rank = 2, M = L, N = M_, vector = 1, registers = rows::registers * cols::registers;

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    return dim == 0 ? rows::template coordinate<0>(row_register(reg)) : cols::template coordinate<0>(col_register(reg));
  }
  static TL_DEVICE constexpr int row_register(int reg) { return reg / cols::registers; }
  static TL_DEVICE constexpr int col_register(int reg) { return reg % cols::registers; }
  static TL_DEVICE bool valid(int reg) { return rows::valid(row_register(reg)) && cols::valid(col_register(reg)); }
  static TL_DEVICE int replica() {
    const unsigned t = thread();
    return static_cast<int>(t % n + t / (l * m * n) * n);
  }
  TL_BOTH static constexpr Spread spread(int dim) { return dim == 1 ? spread_of(n, m) : spread_of(m * n, l); }
};

template <int L_, int M_, int N_, int l, int m, int n, int vector_>
struct Blocked<Shape<L_, M_, N_>, Shape<l, m, n>, vector_> {
  using outer = BlockedAxis<L_, l, m * n, 1>;
  using inner = Blocked<Shape<M_, N_>, Shape<m, n>, vector_>;
  // Without copies the planes are an ordinary two-dimensional layout.
  using planes = std::conditional_t<n == 1, Blocked<Shape<L_, M_>, Shape<l, m>, 1>, BlockedPlanes<L_, M_, l, m, n>>;
  static constexpr int rank = 3, vector = vector_, registers = outer::registers * inner::registers;

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    if constexpr (dim == 0)
      return outer::template coordinate<0>(reg / inner::registers);
    else if constexpr (dim == 1)
      return inner::rows::template coordinate<0>(reg % inner::registers / inner::cols::registers);
    else
      return inner::cols::template coordinate<0>(reg % inner::cols::registers);
  }
  static TL_DEVICE bool valid(int reg) {
    return outer::valid(reg / inner::registers) && inner::valid(reg % inner::registers);
  }
  static TL_DEVICE int replica() { return static_cast<int>(unsigned(thread()) / (l * m * n)); }
  static TL_DEVICE constexpr int plane_register(int reg) {
    return reg / inner::registers * inner::rows::registers + reg % inner::registers / inner::cols::registers;
  }
  // The threads that share a coordinate of the first two dimensions.
  TL_BOTH static constexpr Spread spread(int dim) {
    return dim == 2 ? spread_of(1, n) : dim == 1 ? spread_of(n, m) : spread_of(m * n, l);
  }
};

// Four dimensions: the outermost is partitioned over three-dimensional layouts. For loops, and for fragments that only
// such loops access.
template <int K_, int L_, int M_, int N_, int k, int l, int m, int n, int vector_>
struct Blocked<Shape<K_, L_, M_, N_>, Shape<k, l, m, n>, vector_> {
  using outer = BlockedAxis<K_, k, l * m * n, 1>;
  using inner = Blocked<Shape<L_, M_, N_>, Shape<l, m, n>, vector_>;
  static constexpr int rank = 4, vector = vector_, registers = outer::registers * inner::registers;

  template <int dim> static TL_DEVICE int coordinate(int reg) {
    if constexpr (dim == 0)
      return outer::template coordinate<0>(reg / inner::registers);
    else
      return inner::template coordinate<dim - 1>(reg % inner::registers);
  }
  static TL_DEVICE bool valid(int reg) {
    return outer::valid(reg / inner::registers) && inner::valid(reg % inner::registers);
  }
  static TL_DEVICE int replica() { return static_cast<int>(unsigned(thread()) / (k * l * m * n)); }
};

}  // namespace tl
