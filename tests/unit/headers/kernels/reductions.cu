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
    tl::copy(tl::tensor<tl::RowStart<4>>(X_data, N).tile(0), X);
  else
    tl::copy(tl::tensor<tl::RowStart<4>>(X_data, M, N).tile(0, 0), X);
  const auto Y = tl::tensor<tl::RowStart<sizeof(To)>>(Y_data, 6, count);
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
TL_CASE(blocked_rows, Case<float, float, Blocked<Shape<4, 1000>, Shape<4, 32>, 4>, 4, 1000, 1, 128>)
TL_CASE(blocked_rows_of_4_warps, Case<float, float, Blocked<Shape<3, 520>, Shape<1, 128>, 2>, 3, 520, 1, 128>)
TL_CASE(blocked_cols_of_4_warps, Case<float, float, Blocked<Shape<9, 64>, Shape<4, 32>, 2>, 9, 64, 0, 128>)
TL_CASE(blocked_cols_in_warp, Case<float, float, Blocked<Shape<40, 8>, Shape<8, 4>, 2>, 40, 8, 0, 128>)
TL_CASE(blocked_cols_across, Case<float, float, Blocked<Shape<40, 8>, Shape<16, 8>, 1>, 40, 8, 0, 128>)
TL_CASE(blocked_one_dimension, Case<float, float, Blocked<Shape<1000>, Shape<128>, 4>, 1, 1000, 0, 128>)
TL_CASE(integers, Case<int, int, Blocked<Shape<6, 100>, Shape<4, 32>, 1>, 6, 100, 1, 128>)
TL_CASE(halves, Case<half, half, MmaAccumulator<64, 64, Warps<4, 1>>, 64, 64, 1, 128>)

// max and min skip NaN.
namespace with_nan {
using Layout = Blocked<Shape<4, 64>, Shape<4, 32>, 2>;
__global__ void kernel(const float* X_data, float* Y_data) {
  tl::Fragment<float, Layout> X;
  tl::Fragment<float, tl::RowsOf<Layout>> y;
  tl::copy(tl::tensor<tl::RowStart<8>>(X_data, 4, 64).tile(0, 0), X);
  const auto Y = tl::tensor<tl::RowStart<4>>(Y_data, 2, 4);
  tl::reduce_max<1>(X, y);
  tl::copy(y, Y(0, tl::all).tile(0));
  tl::reduce_min<1>(X, y);
  tl::copy(y, Y(1, tl::all).tile(0));
}
}  // namespace with_nan
extern "C" tl_status skips_nan(const void* X, void* Y) {
  return tl::launch(with_nan::kernel, dim3(1), 128, nullptr, static_cast<const float*>(X), static_cast<float*>(Y));
}
