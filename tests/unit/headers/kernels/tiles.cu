// Copies, transposes and parts of shared tiles; what a kernel says about itself.
#include <tl/tl.h>

namespace tiles {

constexpr int threads = 64;

// X goes through two shared tiles: as it is into one of another swizzle and type, and transposed.
template <class T_, class U_, int M_, int N_, class SwizzleT, class SwizzleU> struct Case {
  using T = T_;
  using U = U_;
  static constexpr int M = M_, N = N_;
  tl::SharedTile<T, M, N, SwizzleT> from;
  tl::SharedTile<U, M, N, SwizzleU> same;
  tl::SharedTile<U, N, M, SwizzleU> turned;
  tl::SharedTile1D<T, N> line;
  tl::SharedTile1D<U, N> other_line;
};
template <class Case>
__global__ void moves(const typename Case::T* X_data, typename Case::U* same_data, typename Case::U* turned_data,
                      typename Case::U* line_data) {
  constexpr int M = Case::M, N = Case::N;
  auto& s = tl::shared<Case>();
  const auto X = tl::tensor<tl::Aligned<2>>(X_data, M, N);
  tl::copy<threads>(X.tile(0, 0), s.from);
  tl::copy<threads>(X(1, tl::all).tile(0), s.line);
  tl::sync_threads();
  tl::copy<threads>(s.from, s.same);
  tl::copy<threads>(s.line, s.other_line);
  tl::transpose<threads>(s.from, s.turned);
  tl::sync_threads();
  tl::copy<threads>(s.same, tl::tensor<tl::Aligned<2>>(same_data, M, N).tile(0, 0));
  tl::copy<threads>(s.turned, tl::tensor<tl::Aligned<2>>(turned_data, N, M).tile(0, 0));
  tl::copy<threads>(s.other_line, tl::tensor<tl::Aligned<2>>(line_data, N).tile(0));
}

// Parts: rows 3..10 are filled, columns 16..31 of them doubled in a loop, and elements 5..8 of a line set.
struct Parts {
  tl::SharedTile<float, 16, 64, tl::Swizzle128B> tile;
  tl::SharedTile1D<float, 16> line;
};
__global__ void parts(float* Y_data, float* sums_data, float* line_data) {
  auto& s = tl::shared<Parts>();
  tl::clear<threads>(s.tile);
  tl::clear<threads>(s.line);
  tl::sync_threads();
  tl::fill<threads>(tl::rows<8>(s.tile, 3), 2);
  const auto few = tl::rows<4>(s.line, 5);
  static_assert(decltype(few)::chunk_bytes == sizeof(few(0)), "nothing is known of where it starts");
  static_assert(decltype(tl::rows<4, tl::Aligned<8>>(s.line, 4))::chunk_bytes == 8, "its start is known");
  if (tl::thread() < 4) few(tl::thread()) = tl::thread() + 1;
  tl::sync_threads();
  const auto part = tl::cols<16>(tl::rows<8>(s.tile, 3), 16);
  using Layout = tl::Blocked<tl::Shape<8, 16>, tl::Shape<8, 4>, 4>;
  tl::parallel_once<4>(Layout{}, [&](auto i, auto j) { part(i, j) = part(i, j) * 2 + tl::cast<float>(j); });
  tl::sync_threads();
  tl::Fragment<float, tl::Blocked<tl::Shape<8>, tl::Shape<8>, 1>> sums;
  tl::reduce_sum<1, threads>(tl::rows<8>(s.tile, 3), sums);
  tl::copy(sums, tl::tensor<tl::Aligned<4>>(sums_data, 8).tile(0));
  tl::copy<threads>(s.tile, tl::tensor<tl::Aligned<16>>(Y_data, 16, 64).tile(0, 0));
  tl::copy<threads>(s.line, tl::tensor<tl::Aligned<4>>(line_data, 16).tile(0));
}

struct Said {
  tl::SharedTile<int, 2, 3, tl::NoSwizzle> tile;
};
__global__ void says(int* Y_data) {
  auto& tile = tl::shared<Said>().tile;
  if (tl::thread() < 6) tile(tl::thread() / 3, tl::thread() % 3) = tl::thread() * 10;
  tl::sync_threads();
  tl::Fragment<float, tl::Blocked<tl::Shape<4>, tl::Shape<2>, 1>> f;
  tl::parallel(tl::Blocked<tl::Shape<4>, tl::Shape<2>, 1>{}, [&](auto i) { f(i) = i + 0.5f; });
  tl::print("tile", tile);
  tl::print("f", f);
  if (tl::thread() == 3) tl::print("half", tl::half(1.5f)), tl::print("Y", tl::tensor<tl::Aligned<4>>(Y_data, 1)(0));
}
__global__ void asserts(int* Y_data, int bound) {
  Y_data[blockIdx.x * threads + tl::thread()] = 1;
  tl::device_assert(tl::thread() < bound, "the bound is too low");
  tl::device_assert(true);
}

template <class Case> tl_status run(const void* X, void* same, void* turned, void* line) {
  using U = typename Case::U;
  return tl::launch<Case>(moves<Case>, dim3(1), threads, nullptr, static_cast<const typename Case::T*>(X),
                          static_cast<U*>(same), static_cast<U*>(turned), static_cast<U*>(line));
}

}  // namespace tiles

#define TL_MOVES(name, ...)                                                        \
  extern "C" tl_status name(const void* X, void* same, void* turned, void* line) { \
    return tiles::run<tiles::Case<__VA_ARGS__>>(X, same, turned, line);            \
  }
TL_MOVES(moves_half, tl::half, tl::half, 64, 32, tl::Swizzle64B, tl::Swizzle64B)
TL_MOVES(moves_converting, float, tl::half, 32, 96, tl::Padded<16>, tl::Swizzle64B)
TL_MOVES(moves_odd, int, float, 7, 13, tl::NoSwizzle, tl::NoSwizzle)
TL_MOVES(moves_bytes, int8_t, int8_t, 16, 48, tl::NoSwizzle, tl::Padded<16>)
extern "C" tl_status parts(void* Y, void* sums, void* line) {
  return tl::launch<tiles::Parts>(tiles::parts, dim3(1), tiles::threads, nullptr, static_cast<float*>(Y),
                                  static_cast<float*>(sums), static_cast<float*>(line));
}
extern "C" tl_status says(void* Y) {
  return tl::launch<tiles::Said>(tiles::says, dim3(1), tiles::threads, nullptr, static_cast<int*>(Y));
}
extern "C" tl_status asserts(void* Y, int bound) {
  return tl::launch(tiles::asserts, dim3(2), tiles::threads, nullptr, static_cast<int*>(Y), bound);
}
