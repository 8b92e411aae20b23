// Rows and columns of fragments, reduced in every way.
#include <tl/tl.h>

namespace reductions {

// Loads an M x N tile into Layout, reduces it along dim by every operation, and writes six results: sum, max, min,
// absmax, abssum, and a sum that is accumulated onto 100.
template <class From_, class To_, class Layout_, int M_, int N_, int dim_, int threads_> struct Case {
  using From = From_;
  using To = To_;
  using Layout = Layout_;
  static constexpr int M = M_, N = N_, dim = dim_, threads = threads_;
  static constexpr int count = Layout::rank == 1 ? 1 : dim == 1 ? M : N, warps = Layout::spread(dim).warps;
  tl::ReduceWorkspace<To, count, warps> workspace;
};

template <class Case>
__global__ void __launch_bounds__(Case::threads)
    all_of_them(const typename Case::From* __restrict__ X_data, typename Case::To* __restrict__ Y_data) {
  using From = typename Case::From;
  using To = typename Case::To;
  using Layout = typename Case::Layout;
  using Result = tl::ReducedLayout<Layout, Case::dim>;
  constexpr int M = Case::M, N = Case::N, dim = Case::dim, count = Case::count, warps = Case::warps;
  tl::Fragment<From, Layout> X;
  if constexpr (Layout::rank == 1)
    tl::copy(tl::tensor<tl::Aligned<4>>(X_data, N).tile(0), X);
  else
    tl::copy(tl::tensor<tl::Aligned<4>>(X_data, M, N).tile(0, 0), X);
  const auto Y = tl::tensor<tl::Aligned<sizeof(To)>>(Y_data, 6, count);
  tl::Fragment<To, Result> y;
  auto& workspace = tl::shared<Case>().workspace;
  const auto store = [&](int row) { tl::copy(y, Y(row, tl::all).tile(0)); };
  if constexpr (warps == 1) {
    tl::reduce_sum<dim>(X, y), store(0);
    tl::reduce_max<dim>(X, y), store(1);
    tl::reduce_min<dim>(X, y), store(2);
    tl::reduce_absmax<dim>(X, y), store(3);
    tl::reduce_abssum<dim>(X, y), store(4);
    tl::fill(y, 100);
    tl::reduce_sum<dim>(X, y, tl::accumulate), store(5);
  } else {
    tl::reduce_sum<dim>(X, y, workspace), store(0);
    tl::reduce_max<dim>(X, y, workspace), store(1);
    tl::reduce_min<dim>(X, y, workspace), store(2);
    tl::reduce_absmax<dim>(X, y, workspace), store(3);
    tl::reduce_abssum<dim>(X, y, workspace), store(4);
    tl::fill(y, 100);
    tl::reduce_sum<dim>(X, y, tl::accumulate, workspace), store(5);
  }
}

template <class Case> tl_status run(const void* X, void* Y) {
  return tl::launch<Case>(all_of_them<Case>, dim3(1), Case::threads, nullptr,
                          static_cast<const typename Case::From*>(X), static_cast<typename Case::To*>(Y));
}

}  // namespace reductions

namespace reductions {

// Three dimensions: sum and maximum along the last, and what a loop over the layout sees of them.
template <int L_, int M_, int N_, class Threads, int vector, int threads_> struct Cube {
  using Layout = tl::Blocked<tl::Shape<L_, M_, N_>, Threads, vector>;
  using Result = tl::ReducedLayout<Layout, 2>;
  static constexpr int L = L_, M = M_, N = N_, threads = threads_, parts = Layout::spread(2).warps;
  tl::ReduceWorkspace<float, L * M, parts> workspace;
};
template <class Case> __global__ void cube(const float* X_data, float* Y_data, float* Z_data) {
  constexpr int L = Case::L, M = Case::M, N = Case::N;
  auto& workspace = tl::shared<Case>().workspace;
  const auto X = tl::tensor<tl::Aligned<4>>(X_data, L, M, N);
  const auto Z = tl::tensor<tl::Aligned<4>>(Z_data, L, M, N);
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, 2, L, M);
  tl::Fragment<float, typename Case::Layout> x;
  tl::Fragment<float, typename Case::Result> total, most;
  tl::copy(X.tile(0, 0, 0), x);
  tl::parallel(typename Case::Result{}, [&](auto i, auto j) { most(i, j) = i + j; });
  if constexpr (Case::parts == 1) {
    tl::reduce_sum<2>(x, total), tl::reduce_max<2>(x, most, tl::accumulate);
  } else {
    tl::reduce_sum<2>(x, total, workspace), tl::reduce_max<2>(x, most, tl::accumulate, workspace);
  }
  tl::copy(total, Y(0, tl::all, tl::all).tile(0, 0));
  tl::copy(most, Y(1, tl::all, tl::all).tile(0, 0));
  tl::parallel(typename Case::Layout{}, [&](auto i, auto j, auto k) { x(i, j, k) -= total(i, j); });
  tl::copy(x, Z.tile(0, 0, 0));
}

// Of a shared tile: into fragments of two layouts and into shared memory; and its first row alone.
constexpr int tile_threads = 64;
template <class T, int M, int N, class Swizzle> struct Tiles {
  tl::SharedTile<T, M, N, Swizzle> tile;
  tl::SharedTile1D<T, N> row;
  tl::SharedTile1D<float, M> rows;
  tl::SharedTile1D<float, N> cols;
};
template <class T, int M, int N, class Swizzle>
__global__ void tiles(const T* X_data, float* rows_data, float* cols_data, float* row_data) {
  constexpr int threads = tile_threads;
  auto& s = tl::shared<Tiles<T, M, N, Swizzle>>();
  const auto X = tl::tensor<tl::Aligned<2>>(X_data, M, N);
  const auto rows = tl::tensor<tl::Aligned<4>>(rows_data, 3, M), cols = tl::tensor<tl::Aligned<4>>(cols_data, 3, N);
  tl::copy<threads>(X.tile(0, 0), s.tile);
  tl::copy<threads>(X(0, tl::all).tile(0), s.row);
  tl::sync_threads();
  tl::Fragment<float, tl::Blocked<tl::Shape<M>, tl::Shape<32>, 1>> by_row;
  tl::Fragment<float, tl::Replicated<tl::Shape<N>>> by_col;
  tl::Fragment<float, tl::Replicated<tl::Shape<1>>> one;
  tl::reduce_sum<1, threads>(s.tile, by_row);
  tl::copy(by_row, rows(0, tl::all).tile(0));
  tl::reduce_max<1, threads>(s.tile, by_row, tl::accumulate);
  tl::copy(by_row, rows(1, tl::all).tile(0));
  tl::reduce_absmax<0, threads>(s.tile, by_col);
  tl::copy(by_col, cols(0, tl::all).tile(0));
  tl::reduce_min<1, threads>(s.tile, s.rows);
  tl::reduce_sum<0, threads>(s.tile, s.cols);
  tl::sync_threads();
  tl::copy<threads>(s.rows, rows(2, tl::all).tile(0));
  tl::copy<threads>(s.cols, cols(1, tl::all).tile(0));
  tl::sync_threads();
  tl::reduce_max<0, threads>(s.tile, s.cols, tl::accumulate);
  tl::sync_threads();
  tl::copy<threads>(s.cols, cols(2, tl::all).tile(0));
  tl::reduce_sum<0, threads>(s.row, one);
  if (tl::thread() == 0) row_data[0] = one(0);
}

// The bits of rows; and of a warp.
__global__ void bits(const int* X_data, int* Y_data) {
  using Layout = tl::Blocked<tl::Shape<6, 100>, tl::Shape<4, 32>, 1>;
  tl::Fragment<int, Layout> x;
  tl::Fragment<int, tl::Slice<1, Layout>> y;
  tl::copy(tl::tensor<tl::Aligned<4>>(X_data, 6, 100).tile(0, 0), x);
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, 4, 6);
  tl::reduce_bitand<1>(x, y), tl::copy(y, Y(0, tl::all).tile(0));
  tl::reduce_bitor<1>(x, y), tl::copy(y, Y(1, tl::all).tile(0));
  tl::reduce_bitxor<1>(x, y), tl::copy(y, Y(2, tl::all).tile(0));
  const int mine = X_data[tl::lane()];
  const int of_warp[] = {tl::warp_reduce_sum(mine),    tl::warp_reduce_max(mine),   tl::warp_reduce_min(mine),
                         tl::warp_reduce_bitand(mine), tl::warp_reduce_bitor(mine), tl::warp_reduce_bitxor(mine)};
  if (tl::thread() == 77)
    for (int i = 0; i < 6; ++i) Y(3, i) = of_warp[i];
}

// any and all of a tile, in shared memory and in registers: four bits, the same in each thread.
struct Votes {
  tl::SharedTile<int, 5, 9, tl::NoSwizzle> tile;
  int votes[3];
};
__global__ void votes(const int* X_data, int* Y_data) {
  auto& s = tl::shared<Votes>();
  const auto X = tl::tensor<tl::Aligned<4>>(X_data, 5, 9);
  tl::Fragment<int, tl::Blocked<tl::Shape<5, 9>, tl::Shape<8, 4>, 1>> x;
  tl::copy(X.tile(0, 0), x);
  tl::copy<96>(X.tile(0, 0), s.tile);
  tl::sync_threads();
  Y_data[tl::thread()] =
      tl::any_of(s.tile) + 2 * tl::all_of(s.tile) + 4 * tl::any_of(x, s.votes) + 8 * tl::all_of(x, s.votes);
}

template <class Case> tl_status run_cube(const void* X, void* Y, void* Z) {
  return tl::launch<Case>(cube<Case>, dim3(1), Case::threads, nullptr, static_cast<const float*>(X),
                          static_cast<float*>(Y), static_cast<float*>(Z));
}
template <class T, int M, int N, class Swizzle> tl_status run_tiles(const void* X, void* rows, void* cols, void* row) {
  return tl::launch<Tiles<T, M, N, Swizzle>>(tiles<T, M, N, Swizzle>, dim3(1), tile_threads, nullptr,
                                             static_cast<const T*>(X), static_cast<float*>(rows),
                                             static_cast<float*>(cols), static_cast<float*>(row));
}

}  // namespace reductions

#define TL_CUBE(name, ...)                                               \
  extern "C" tl_status name(const void* X, void* Y, void* Z) {           \
    return reductions::run_cube<reductions::Cube<__VA_ARGS__>>(X, Y, Z); \
  }
#define TL_TILES(name, ...)                                                     \
  extern "C" tl_status name(const void* X, void* rows, void* cols, void* row) { \
    return reductions::run_tiles<__VA_ARGS__>(X, rows, cols, row);              \
  }
TL_CUBE(cube_in_warp, 3, 5, 20, tl::Shape<2, 4, 4>, 4, 32)
TL_CUBE(cube_without_copies, 4, 6, 7, tl::Shape<4, 8, 1>, 1, 64)
TL_CUBE(cube_across, 2, 3, 130, tl::Shape<1, 2, 64>, 2, 128)
TL_CUBE(cube_odd, 3, 4, 24, tl::Shape<1, 4, 12>, 1, 96)
TL_TILES(tile_of_floats, float, 20, 64, tl::Swizzle128B)
TL_TILES(tile_of_halves, tl::half, 33, 40, tl::Padded<16>)
extern "C" tl_status bits(const void* X, void* Y) {
  return tl::launch(reductions::bits, dim3(1), 128, nullptr, static_cast<const int*>(X), static_cast<int*>(Y));
}
extern "C" tl_status votes(const void* X, void* Y) {
  return tl::launch<reductions::Votes>(reductions::votes, dim3(1), 96, nullptr, static_cast<const int*>(X),
                                       static_cast<int*>(Y));
}

#define TL_CASE(name, ...) \
  extern "C" tl_status name(const void* X, void* Y) { return reductions::run<reductions::__VA_ARGS__>(X, Y); }
using tl::Blocked;
using tl::half;
using tl::MmaAccumulator;
using tl::MmaOperandA;
using tl::Shape;
using tl::Warps;
TL_CASE(mma_rows, Case<float, float, MmaAccumulator<64, 64, Warps<4, 1>>, 64, 64, 1, 128>)
TL_CASE(mma_rows_of_2_warps, Case<float, float, MmaAccumulator<64, 64, Warps<2, 2>>, 64, 64, 1, 128>)
TL_CASE(mma_cols_of_2_warps, Case<float, float, MmaAccumulator<64, 48, Warps<2, 2>>, 64, 48, 0, 128>)
TL_CASE(mma_cols, Case<float, float, MmaAccumulator<32, 64, Warps<1, 4>>, 32, 64, 0, 128>)
TL_CASE(operand_rows, Case<half, float, MmaOperandA<64, 32, Warps<2, 2>>, 64, 32, 1, 128>)
TL_CASE(operand_b_rows, Case<half, float, tl::MmaOperandB<32, 48, Warps<2, 2>>, 32, 48, 1, 128>)
TL_CASE(operand_b_cols, Case<half, float, tl::MmaTransposedOperandB<48, 32, Warps<2, 2>>, 48, 32, 0, 128>)
TL_CASE(blocked_rows, Case<float, float, Blocked<Shape<4, 1000>, Shape<4, 32>, 4>, 4, 1000, 1, 128>)
TL_CASE(blocked_rows_of_4_warps, Case<float, float, Blocked<Shape<3, 520>, Shape<1, 128>, 2>, 3, 520, 1, 128>)
TL_CASE(blocked_cols_of_4_warps, Case<float, float, Blocked<Shape<9, 64>, Shape<4, 32>, 2>, 9, 64, 0, 128>)
TL_CASE(neighbouring_rows, Case<float, float, Blocked<Shape<8, 72>, Shape<4, 32>, 4, 2>, 8, 72, 1, 128>)
TL_CASE(cols_of_neighbouring_rows, Case<float, float, Blocked<Shape<40, 8>, Shape<8, 4>, 2, 5>, 40, 8, 0, 128>)
TL_CASE(blocked_cols_in_warp, Case<float, float, Blocked<Shape<40, 8>, Shape<8, 4>, 2>, 40, 8, 0, 128>)
TL_CASE(blocked_cols_across, Case<float, float, Blocked<Shape<40, 8>, Shape<16, 8>, 1>, 40, 8, 0, 128>)
TL_CASE(blocked_one_dimension, Case<float, float, Blocked<Shape<1000>, Shape<128>, 4>, 1, 1000, 0, 128>)
TL_CASE(odd_rows, Case<float, float, Blocked<Shape<10, 60>, Shape<4, 30>, 1>, 10, 60, 1, 128>)
TL_CASE(odd_cols, Case<float, float, Blocked<Shape<10, 60>, Shape<4, 30>, 2>, 10, 60, 0, 128>)
TL_CASE(rows_of_one_and_a_half_warps, Case<float, float, Blocked<Shape<7, 96>, Shape<2, 48>, 2>, 7, 96, 1, 96>)
TL_CASE(cols_of_three_lanes, Case<float, float, Blocked<Shape<9, 8>, Shape<3, 8>, 1>, 9, 8, 0, 32>)
TL_CASE(odd_line, Case<float, float, Blocked<Shape<100>, Shape<40>, 1>, 1, 100, 0, 64>)
TL_CASE(integers, Case<int, int, Blocked<Shape<6, 100>, Shape<4, 32>, 1>, 6, 100, 1, 128>)
TL_CASE(halves, Case<half, half, MmaAccumulator<64, 64, Warps<4, 1>>, 64, 64, 1, 128>)

// max and min skip NaN.
namespace with_nan {
using Layout = Blocked<Shape<4, 64>, Shape<4, 32>, 2>;
__global__ void kernel(const float* X_data, float* Y_data) {
  tl::Fragment<float, Layout> X;
  tl::Fragment<float, tl::Slice<1, Layout>> y;
  tl::copy(tl::tensor<tl::Aligned<8>>(X_data, 4, 64).tile(0, 0), X);
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, 2, 4);
  tl::reduce_max<1>(X, y);
  tl::copy(y, Y(0, tl::all).tile(0));
  tl::reduce_min<1>(X, y);
  tl::copy(y, Y(1, tl::all).tile(0));
}
}  // namespace with_nan
extern "C" tl_status skips_nan(const void* X, void* Y) {
  return tl::launch(with_nan::kernel, dim3(1), 128, nullptr, static_cast<const float*>(X), static_cast<float*>(Y));
}
