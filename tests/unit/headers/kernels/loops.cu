// tl::parallel with and without packets, mathematics, and elements of tensors.
#include <tl/tl.h>

namespace loops {

// Y = X with a few things done to it, `vector` elements at a time.
template <class T, class Start, int vector>
__global__ void arithmetic(const T* X_data, T* Y_data, int M, int N, int row, int col) {
  using Layout = tl::Blocked<tl::Shape<6, 64>, tl::Shape<4, 8>, 8>;
  const auto X = tl::tensor<Start>(X_data, tl::predicated(M), tl::predicated(N));
  const auto Y = tl::tensor<Start>(Y_data, tl::predicated(M), tl::predicated(N));
  tl::parallel<vector>(Layout{}, [&](auto i, auto j) {
    const auto x = tl::cast<float>(X(row + i, col + j));
    const auto bounded = tl::min(tl::max(x, -3.0f), 2.5f);
    const auto even = tl::cast<int>(x) % 2 == 0;
    Y(row + i, col + j) = tl::cast<T>(tl::select(even, bounded * 2.0f, -x) + tl::cast<float>(j));
    Y(row + i, col + j) += X(row + i, col + j);
  });
}

template <class T, class Start, int vector> tl_status run(const void* X, void* Y, int M, int N, int row, int col) {
  return tl::launch(arithmetic<T, Start, vector>, dim3(1), 32, nullptr, static_cast<const T*>(X), static_cast<T*>(Y), M,
                    N, row, col);
}

// A bias a column, a scale a row, and sums kept by column: fragments of a slice of the loop's layout.
template <class Layout, int M, int N> __global__ void broadcast(const float* X_data, float* Y_data) {
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, M, N);
  const auto Y = tl::tensor<tl::Aligned<16>>(Y_data, M, N);
  tl::Fragment<float, Layout> x;
  tl::Fragment<float, tl::Slice<1, Layout>> scale;
  tl::Fragment<float, tl::Slice<0, Layout>> bias;
  tl::copy(X.tile(0, 0), x);
  tl::parallel(tl::Slice<1, Layout>{}, [&](auto i) { scale(i) = i + 1; });
  tl::parallel(tl::Slice<0, Layout>{}, [&](auto j) { bias(j) = 100 * j; });
  tl::parallel<2>(Layout{}, [&](auto i, auto j) { x(i, j) = x(i, j) * scale(i) + bias(j); });
  tl::copy(x, Y.tile(0, 0));
}

struct Shared {
  tl::SharedTile<float, 8, 32, tl::Swizzle128B> tile;
  tl::SharedTile1D<int, 64> counts;
};
// Elements of shared tiles one by one and in packets, atomics, and stores by owners only.
__global__ void elements(const float* X_data, float* Y_data, int* count_data, float* once_data) {
  auto& tile = tl::shared<Shared>().tile;
  auto& counts = tl::shared<Shared>().counts;
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, 8, 32);
  const auto Y = tl::tensor<tl::Aligned<16>>(Y_data, 8, 32);
  const auto count = tl::tensor<tl::Aligned<4>>(count_data, tl::predicated(3));
  const auto once = tl::tensor<tl::Aligned<4>>(once_data, 8);
  using Layout = tl::Blocked<tl::Shape<8, 32>, tl::Shape<8, 8>, 4>;
  using Rows = tl::Slice<1, Layout>;
  tl::fill<64>(counts, 0);
  tl::parallel<4>(Layout{}, [&](auto i, auto j) { tile(i, j) = X(i, j); });
  tl::sync_threads();
  tl::parallel(Layout{}, [&](auto i, auto j) { Y(i, j) = tile(i, 31 - j); });
  tl::parallel(Layout{}, [&](auto i, auto) { tl::atomic_add(count(i), 2); });
  tl::parallel(Layout{}, [&](auto i, auto) { tl::atomic_add(counts(i), 1); });
  tl::sync_threads();
  tl::parallel_once(Rows{}, [&](auto i) { once(i) = 10 * i + counts(i); });
}

// Three dimensions, and a fragment that every thread holds.
__global__ void cube(const float* X_data, float* Y_data) {
  using Layout = tl::Blocked<tl::Shape<3, 5, 20>, tl::Shape<2, 4, 4>, 4>;
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, 3, 5, 20);
  const auto Y = tl::tensor<tl::Aligned<16>>(Y_data, 3, 5, 20);
  tl::Fragment<float, Layout> x;
  tl::Fragment<float, tl::Replicated<tl::Shape<3>>> offset;
  tl::parallel(tl::Replicated<tl::Shape<3>>{}, [&](auto i) { offset(i) = 1000.0f * i; });
  tl::copy(X.tile(0, 0, 0), x);
  tl::parallel(Layout{}, [&](auto i, auto j, auto k) { x(i, j, k) += offset(i) + j * 100; });
  tl::copy(x, Y.tile(0, 0, 0));
}

// Every function of one argument, a row each.
__global__ void functions(const float* X_data, float* Y_data) {
  constexpr int n = 128;
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, n);
  const auto Y = tl::tensor<tl::Aligned<16>>(Y_data, 16, n);
  tl::parallel<4>(tl::Blocked<tl::Shape<n>, tl::Shape<32>, 4>{}, [&](auto i) {
    const auto x = X(i);
    Y(0, i) = tl::exp(x), Y(1, i) = tl::exp2(x), Y(2, i) = tl::log(tl::abs(x)), Y(3, i) = tl::log2(tl::abs(x));
    Y(4, i) = tl::sqrt(tl::abs(x)), Y(5, i) = tl::rsqrt(tl::abs(x)), Y(6, i) = tl::tanh(x), Y(7, i) = tl::sigmoid(x);
    Y(8, i) = tl::sin(x), Y(9, i) = tl::cos(x), Y(10, i) = tl::erf(x), Y(11, i) = tl::floor(x);
    Y(12, i) = tl::ceil(x), Y(13, i) = tl::round(x), Y(14, i) = tl::trunc(x), Y(15, i) = tl::pow(tl::abs(x), 1.5f);
  });
}

}  // namespace loops

#define TL_ARITHMETIC(name, ...)                                                      \
  extern "C" tl_status name(const void* X, void* Y, int M, int N, int row, int col) { \
    return loops::run<__VA_ARGS__>(X, Y, M, N, row, col);                             \
  }
TL_ARITHMETIC(float_1, float, tl::AnyAlignment, 1)
TL_ARITHMETIC(float_4, float, tl::AnyAlignment, 4)
TL_ARITHMETIC(float_8_known, float, tl::Aligned<16>, 8)
TL_ARITHMETIC(half_1, tl::half, tl::AnyAlignment, 1)
TL_ARITHMETIC(half_8, tl::half, tl::AnyAlignment, 8)
TL_ARITHMETIC(bfloat16_8_known, tl::bfloat16, tl::Aligned<4>, 8)

using Mma = tl::MmaAccumulator<32, 48, tl::Warps<2, 2>>;
using Square = tl::Blocked<tl::Shape<30, 50>, tl::Shape<8, 16>, 2>;
extern "C" tl_status broadcast_mma(const void* X, void* Y) {
  return tl::launch(loops::broadcast<Mma, 32, 48>, dim3(1), 128, nullptr, static_cast<const float*>(X),
                    static_cast<float*>(Y));
}
extern "C" tl_status broadcast_blocked(const void* X, void* Y) {
  return tl::launch(loops::broadcast<Square, 30, 50>, dim3(1), 128, nullptr, static_cast<const float*>(X),
                    static_cast<float*>(Y));
}
extern "C" tl_status elements(const void* X, void* Y, void* count, void* once) {
  return tl::launch<loops::Shared>(loops::elements, dim3(1), 64, nullptr, static_cast<const float*>(X),
                                   static_cast<float*>(Y), static_cast<int*>(count), static_cast<float*>(once));
}
extern "C" tl_status cube(const void* X, void* Y) {
  return tl::launch(loops::cube, dim3(1), 32, nullptr, static_cast<const float*>(X), static_cast<float*>(Y));
}
extern "C" tl_status functions(const void* X, void* Y) {
  return tl::launch(loops::functions, dim3(1), 32, nullptr, static_cast<const float*>(X), static_cast<float*>(Y));
}
extern "C" tl_status empty_grid(const void*, void*) {
  return tl::launch(loops::functions, dim3(0), 32, nullptr, nullptr, nullptr);
}

// Each block writes its number where its tile is.
template <int panel, tl::GroupOf across, int dies = 1> __global__ void order(int* Y_data) {
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, int(gridDim.y), int(gridDim.x));
  const auto tile = tl::grouped_order<panel, across, dies>();
  Y(tile.y, tile.x) = int(blockIdx.x + blockIdx.y * gridDim.x);
}
extern "C" tl_status order_rows(void* Y, int x, int y) {
  return tl::launch(order<3, tl::GroupOf::rows>, dim3(x, y), 1, nullptr, static_cast<int*>(Y));
}
extern "C" tl_status order_on_dies(void* Y, int x, int y) {
  return tl::launch(order<3, tl::GroupOf::rows, 4>, dim3(x, y), 1, nullptr, static_cast<int*>(Y));
}
extern "C" tl_status order_columns(void* Y, int x, int y) {
  return tl::launch(order<2, tl::GroupOf::columns>, dim3(x, y), 1, nullptr, static_cast<int*>(Y));
}

__global__ void order_on_xcds(int* Y_data) {
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, int(gridDim.z), int(gridDim.y), int(gridDim.x));
  const auto tile = tl::contiguous_order<4>();
  Y(tile.z, tile.y, tile.x) = int(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
}
extern "C" tl_status order_contiguous(void* Y, int x, int y, int z) {
  return tl::launch(order_on_xcds, dim3(x, y, z), 1, nullptr, static_cast<int*>(Y));
}

template <int wide, int high> __global__ void order_of_clusters(int* Y_data) {
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, int(gridDim.y), int(gridDim.x));
  const auto tile = tl::grouped_order_of_clusters<6, tl::GroupOf::rows, wide, high>();
  Y(tile.y, tile.x) = int(blockIdx.x + blockIdx.y * gridDim.x);
}
extern "C" tl_status clusters_1_2(void* Y, int x, int y) {
  return tl::launch(order_of_clusters<1, 2>, dim3(x, y), 1, nullptr, static_cast<int*>(Y));
}
extern "C" tl_status clusters_2_1(void* Y, int x, int y) {
  return tl::launch(order_of_clusters<2, 1>, dim3(x, y), 1, nullptr, static_cast<int*>(Y));
}
extern "C" tl_status clusters_2_4(void* Y, int x, int y) {
  return tl::launch(order_of_clusters<2, 4>, dim3(x, y), 1, nullptr, static_cast<int*>(Y));
}
