// Atomic updates of elements, packets, and whole tiles.
#include <tl/tl.h>

namespace atomics {

constexpr int threads = 64, M = 12, N = 48;
using Layout = tl::Blocked<tl::Shape<M, N>, tl::Shape<4, 16>, 1>;

// Row i of X goes into element i of four results, of which the last lies outside; S does the same in shared memory.
template <class T> struct Shared {
  tl::SharedTile<T, 4, M, tl::NoSwizzle> results;
};
template <class T> __global__ void elements(const T* X_data, T* Y_data, T* Z_data) {
  auto& S = tl::shared<Shared<T>>().results;
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, M, N);
  const auto Y = tl::tensor<tl::AnyAlignment>(Y_data, 3, tl::predicated(M - 1));
  const auto Z = tl::tensor<tl::Aligned<sizeof(T)>>(Z_data, 3, M);
  tl::fill<threads>(S, T(1));
  tl::sync_threads();
  tl::parallel(Layout{}, [&](auto i, auto j) {
    tl::atomic_add(Y(0, i), X(i, j));
    tl::atomic_max(Y(1, i), X(i, j));
    tl::atomic_min(Y(2, i), X(i, j));
    tl::atomic_add(S(0, i), X(i, j));
    tl::atomic_max(S(1, i), X(i, j));
    tl::atomic_min(S(2, i), X(i, j));
  });
  tl::sync_threads();
  if (blockIdx.x == 0)
    tl::parallel_once(tl::Blocked<tl::Shape<3, M>, tl::Shape<4, 16>, 1>{}, [&](auto i, auto j) { Z(i, j) = S(i, j); });
}

// The bits of every element of a row, and tickets: each old value is given once.
__global__ void bits(const unsigned* X_data, unsigned* Y_data, int* tickets_data) {
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, M, N);
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, 3, M);
  const auto tickets = tl::tensor<tl::Aligned<4>>(tickets_data, M * N + 1);
  tl::parallel(Layout{}, [&](auto i, auto j) {
    tl::atomic_and(Y(0, i), X(i, j));
    tl::atomic_or(Y(1, i), X(i, j));
    tl::atomic_xor(Y(2, i), X(i, j));
    tickets(1 + tl::atomic_add(tickets(0), 1)) = i * N + j;
  });
}

// X is added to Y at a place, by fragments, by a shared tile, and by packets; each block does it once.
template <class To, class L> struct Tile {
  tl::SharedTile<float, L::M, L::N, tl::Padded<16>> wide;
  tl::SharedTile<To, L::M, L::N, tl::NoSwizzle> narrow;
};
template <class To, class L, class Start>
__global__ void tiles(const float* X_data, To* sum_data, To* max_data, int rows, int cols, int row, int col) {
  auto& s = tl::shared<Tile<To, L>>();
  const auto X = tl::tensor<tl::Aligned<16>>(X_data, L::M, L::N);
  const auto sum = tl::tensor<Start>(sum_data, 4, tl::predicated(rows), tl::predicated(cols));
  const auto most = tl::tensor<Start>(max_data, tl::predicated(rows), tl::predicated(cols));
  tl::Fragment<float, L> x;
  tl::copy(X.tile(0, 0), x);
  tl::copy<128>(X.tile(0, 0), s.wide);
  tl::clear<128>(s.narrow);
  tl::sync_threads();
  tl::atomic_add(x, sum(0, tl::all, tl::all).tile(row, col));
  tl::atomic_max(x, most.tile(row, col));
  tl::atomic_min(x, most.tile(row, col));
  tl::atomic_add<128>(s.wide, sum(1, tl::all, tl::all).tile(row, col));
  tl::atomic_add(x, s.narrow);
  tl::parallel_once<L::vector>(L{}, [&](auto i, auto j) { tl::atomic_add(sum(2, row + i, col + j), x(i, j)); });
  tl::sync_threads();
  tl::atomic_add<128>(s.narrow, sum(3, tl::all, tl::all).tile(row, col));
}
template <class To, class L, class Start>
tl_status run_tiles(const void* X, void* sum, void* most, int rows, int cols, int row, int col) {
  return tl::launch<Tile<To, L>>(tiles<To, L, Start>, dim3(2), 128, nullptr, static_cast<const float*>(X),
                                 static_cast<To*>(sum), static_cast<To*>(most), rows, cols, row, col);
}

// Of several blocks: an atomic of all of them, next to a plain write by block 0 when `fault` is 1, or a plain read.
__global__ void mixed(int* Y_data, int fault) {
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, 2);
  if (fault == 1 && blockIdx.x == 0) Y(0) = 5;
  tl::atomic_add(Y(0), 1);
  if (fault == 2 && blockIdx.x == 1) Y(0) = 5;
  if (fault == 3 && blockIdx.x == 1) Y(1) = Y(0);
}

}  // namespace atomics

#define TL_ELEMENTS(name, T)                                                                                 \
  extern "C" tl_status name(const void* X, void* Y, void* Z) {                                               \
    return tl::launch<atomics::Shared<T>>(atomics::elements<T>, dim3(3), atomics::threads, nullptr,          \
                                          static_cast<const T*>(X), static_cast<T*>(Y), static_cast<T*>(Z)); \
  }
TL_ELEMENTS(elements_float, float)
TL_ELEMENTS(elements_double, double)
TL_ELEMENTS(elements_int, int)
TL_ELEMENTS(elements_unsigned, unsigned)
TL_ELEMENTS(elements_int64, int64_t)
TL_ELEMENTS(elements_half, tl::half)
TL_ELEMENTS(elements_bfloat16, tl::bfloat16)

extern "C" tl_status bits(const void* X, void* Y, void* tickets) {
  return tl::launch(atomics::bits, dim3(1), atomics::threads, nullptr, static_cast<const unsigned*>(X),
                    static_cast<unsigned*>(Y), static_cast<int*>(tickets));
}
extern "C" tl_status mixed(void* Y, int fault) {
  return tl::launch(atomics::mixed, dim3(3), 1, nullptr, static_cast<int*>(Y), fault);
}

#define TL_TILES(name, ...)                                                                               \
  extern "C" tl_status name(const void* X, void* sum, void* most, int rows, int cols, int row, int col) { \
    return atomics::run_tiles<__VA_ARGS__>(X, sum, most, rows, cols, row, col);                           \
  }
using Mma = tl::MmaAccumulator<32, 24, tl::Warps<2, 1>>;
using Wide = tl::Blocked<tl::Shape<32, 24>, tl::Shape<16, 3>, 8>;
TL_TILES(tiles_float, float, Mma, tl::AnyAlignment)
TL_TILES(tiles_float_known, float, Wide, tl::Aligned<16>)
TL_TILES(tiles_half, tl::half, Mma, tl::AnyAlignment)
TL_TILES(tiles_half_known, tl::half, Wide, tl::Aligned<4>)
TL_TILES(tiles_bfloat16, tl::bfloat16, Wide, tl::AnyAlignment)
TL_TILES(tiles_int, int, Wide, tl::AnyAlignment)
