// A tile from a tensor into shared memory (and on), and back out without gaps.
#include <tl/tl.h>

namespace copies {

constexpr int rows = 48, cols = 40;

// ---- tensor -> shared tile -> tensor -----------------------------------------------------------------------------

template <class T, class Swizzle> struct Shared {
  tl::SharedTile<T, rows, cols, Swizzle> tile;
};

template <class T, class View, class Swizzle, int threads, bool async>
TL_DEVICE void through_shared(const View& X, T* __restrict__ Y_data, int row, int col) {
  auto& tile = tl::shared<Shared<T, Swizzle>>().tile;
  if constexpr (async) {
    tl::copy_async<threads>(X.tile(row, col), tile);
    tl::cp_async_commit();
    tl::cp_async_wait<0>();
  } else {
    tl::copy<threads>(X.tile(row, col), tile);
  }
  tl::sync_threads();
  tl::copy<threads>(tile, tl::tensor<tl::Aligned<sizeof(T)>>(Y_data, rows, cols).tile(0, 0));
}

template <class T, class Start, class Swizzle, int threads, bool async>
__global__ void __launch_bounds__(threads)
    ragged(const T* __restrict__ X_data, T* __restrict__ Y_data, int M, int N, int row, int col) {
  const auto X = tl::tensor<Start>(X_data, tl::predicated(M), tl::predicated(N));
  through_shared<T, decltype(X), Swizzle, threads, async>(X, Y_data, row, col);
}
template <class T, class Start, class Swizzle, int threads, bool async>
tl_status run(const void* X, void* Y, int M, int N, int row, int col) {
  return tl::launch<Shared<T, Swizzle>>(ragged<T, Start, Swizzle, threads, async>, dim3(1), threads, nullptr,
                                        static_cast<const T*>(X), static_cast<T*>(Y), M, N, row, col);
}

// X is (L, M, stride) of which N columns belong to the tensor; the plane `l` may lie outside.
template <bool async>
__global__ void strided(const float* X_data, float* Y_data, int L, int M, int N, int stride, int l, int row, int col) {
  const auto X = tl::strided_tensor<tl::AnyAlignment>(X_data, tl::strides(int64_t(M) * stride, stride, 1), tl::predicated(L),
                                                     tl::predicated(M), tl::predicated(N));
  const auto plane = X(l, tl::all, tl::all);
  through_shared<float, decltype(plane), tl::NoSwizzle, 96, async>(plane, Y_data, row, col);
}

// A column-major tensor: neighbours along a row are M apart.
__global__ void transposed(const float* X_data, float* Y_data, int M, int N) {
  const auto X = tl::strided_tensor<tl::AnyAlignment>(X_data, tl::strides(1, M), tl::predicated(M), tl::predicated(N));
  through_shared<float, decltype(X), tl::NoSwizzle, 96, true>(X, Y_data, 0, 0);
}

// ---- tensor -> fragment -> shared tile of another type -> fragment -> tensor -------------------------------------

template <class Layout, class Swizzle>
__global__ void through_registers(const float* X_data, float* Y_data, int M, int N, int row, int col, int to_row) {
  auto& tile = tl::shared<Shared<tl::half, Swizzle>>().tile;
  tl::Fragment<float, Layout> first;
  tl::Fragment<double, Layout> second;
  tl::copy(tl::tensor<tl::AnyAlignment>(X_data, tl::predicated(M), tl::predicated(N)).tile(row, col), first);
  tl::copy(first, tile);
  tl::sync_threads();
  tl::copy(tile, second);
  tl::copy(second, tl::tensor<tl::AnyAlignment>(Y_data, tl::predicated(M), tl::predicated(N)).tile(to_row, col));
}
template <class Layout, class Swizzle>
tl_status run_registers(const void* X, void* Y, int M, int N, int row, int col, int to_row) {
  return tl::launch<Shared<tl::half, Swizzle>>(through_registers<Layout, Swizzle>, dim3(1), 128, nullptr,
                                               static_cast<const float*>(X), static_cast<float*>(Y), M, N, row, col,
                                               to_row);
}

// ---- one dimension -----------------------------------------------------------------------------------------------

struct Line {
  tl::SharedTile1D<tl::half, 200> line, doubled;
};
__global__ void line(const tl::half* X_data, tl::half* Y_data, int N, int at) {
  auto& line = tl::shared<Line>().line;
  auto& copied = tl::shared<Line>().doubled;
  const auto X = tl::tensor<tl::AnyAlignment>(X_data, tl::predicated(N));
  const auto Y = tl::tensor<tl::AnyAlignment>(Y_data, tl::predicated(N));
  tl::fill<64>(copied, 1.0f);
  tl::copy_async<64>(X.tile(at), line);
  tl::cp_async_commit();
  tl::cp_async_wait<0>();
  tl::sync_threads();
  tl::copy<64>(line, copied);
  tl::sync_threads();
  tl::copy<64>(copied, Y.tile(at));
}

// ---- a pipeline that sums its tiles ------------------------------------------------------------------------------

template <int stages> struct Slots {
  tl::SharedTile<float, 8, 32, tl::Swizzle128B> tile[stages];
};
template <int stages> __global__ void __launch_bounds__(64) pipeline(const float* X_data, float* Y_data, int trips) {
  using Layout = tl::Blocked<tl::Shape<8, 32>, tl::Shape<8, 8>, 4>;
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, 8, 32 * trips);
  auto& tile = tl::shared<Slots<stages>>().tile;
  tl::Fragment<float, Layout> sum, part;
  tl::clear(sum);
  auto load = [&](int k) { tl::copy_async<64>(X.tile(0, k * 32), tile[k % stages]); };
  const int num_iterations = trips;
  for (int k = 0; k < stages - 1; ++k) {
    if (k < num_iterations) load(k);
    tl::cp_async_commit();
  }
  for (int k = 0; k < num_iterations; ++k) {
    tl::cp_async_wait<stages - 2>();
    tl::sync_threads();
    if (k + stages - 1 < num_iterations) load(k + stages - 1);
    tl::cp_async_commit();
    tl::copy(tile[k % stages], part);
    tl::parallel(Layout{}, [&](auto i, auto j) { sum(i, j) += (k + 1) * part(i, j); });
  }
  tl::copy(sum, tl::tensor<tl::Aligned<16>>(Y_data, 8, 32).tile(0, 0));
}
template <int stages> tl_status run_pipeline(const void* X, void* Y, int trips) {
  return tl::launch<Slots<stages>>(pipeline<stages>, dim3(1), 64, nullptr, static_cast<const float*>(X),
                                   static_cast<float*>(Y), trips);
}

// ---- more than 2^31 elements -------------------------------------------------------------------------------------

__global__ void far(int8_t* X_data, int M, int N, int row, int col) {
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, tl::predicated(M), tl::predicated(N));
  tl::parallel(tl::Blocked<tl::Shape<2, 32>, tl::Shape<2, 16>>{}, [&](auto i, auto j) { X(row + i, col + j) += 1; });
}

}  // namespace copies

#define TL_RAGGED(name, ...)                                                          \
  extern "C" tl_status name(const void* X, void* Y, int M, int N, int row, int col) { \
    return copies::run<__VA_ARGS__>(X, Y, M, N, row, col);                            \
  }
TL_RAGGED(half_any_async, tl::half, tl::AnyAlignment, tl::NoSwizzle, 96, true)
TL_RAGGED(half_any, tl::half, tl::AnyAlignment, tl::NoSwizzle, 96, false)
TL_RAGGED(half_padded_async, tl::half, tl::AnyAlignment, tl::Padded<16>, 128, true)
TL_RAGGED(half_16_async, tl::half, tl::Aligned<16>, tl::NoSwizzle, 128, true)
TL_RAGGED(half_8_async, tl::half, tl::Aligned<8>, tl::NoSwizzle, 128, true)
TL_RAGGED(half_4, tl::half, tl::Aligned<4>, tl::NoSwizzle, 128, false)
TL_RAGGED(half_2_async, tl::half, tl::Aligned<2>, tl::NoSwizzle, 128, true)
TL_RAGGED(float_any_async, float, tl::AnyAlignment, tl::Swizzle32B, 96, true)
TL_RAGGED(float_any, float, tl::AnyAlignment, tl::Swizzle32B, 96, false)
TL_RAGGED(byte_any_async, int8_t, tl::AnyAlignment, tl::NoSwizzle, 96, true)
TL_RAGGED(double_any_async, double, tl::AnyAlignment, tl::Swizzle64B, 96, true)

extern "C" tl_status planes(const void* X, void* Y, int L, int M, int N, int stride, int l, int row, int col) {
  return tl::launch<copies::Shared<float, tl::NoSwizzle>>(copies::strided<true>, dim3(1), 96, nullptr,
                                                          static_cast<const float*>(X), static_cast<float*>(Y), L, M, N,
                                                          stride, l, row, col);
}
extern "C" tl_status column_major(const void* X, void* Y, int M, int N) {
  return tl::launch<copies::Shared<float, tl::NoSwizzle>>(copies::transposed, dim3(1), 96, nullptr,
                                                          static_cast<const float*>(X), static_cast<float*>(Y), M, N);
}
#define TL_REGISTERS(name, ...)                                                                   \
  extern "C" tl_status name(const void* X, void* Y, int M, int N, int row, int col, int to_row) { \
    return copies::run_registers<__VA_ARGS__>(X, Y, M, N, row, col, to_row);                      \
  }
using Small = tl::Blocked<tl::Shape<copies::rows, copies::cols>, tl::Shape<8, 10>, 4>;  // 80 of 128 threads
using Mma = tl::MmaAccumulator<copies::rows, copies::cols, tl::Warps<1, 1>>;  // 4 warps, of which 3 hold copies
TL_REGISTERS(blocked, Small, tl::NoSwizzle)
TL_REGISTERS(accumulator, Mma, tl::Padded<16>)

extern "C" tl_status line(const void* X, void* Y, int N, int at) {
  return tl::launch<copies::Line>(copies::line, dim3(1), 64, nullptr, static_cast<const tl::half*>(X),
                                  static_cast<tl::half*>(Y), N, at);
}
extern "C" tl_status pipeline_2(const void* X, void* Y, int trips) { return copies::run_pipeline<2>(X, Y, trips); }
extern "C" tl_status pipeline_3(const void* X, void* Y, int trips) { return copies::run_pipeline<3>(X, Y, trips); }
extern "C" tl_status pipeline_4(const void* X, void* Y, int trips) { return copies::run_pipeline<4>(X, Y, trips); }
extern "C" tl_status far(void* X, int M, int N, int row, int col) {
  return tl::launch(copies::far, dim3(1), 32, nullptr, static_cast<int8_t*>(X), M, N, row, col);
}
