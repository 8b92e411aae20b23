// Scans of fragments and shared tiles, in every direction.
#include <tl/tl.h>

namespace scans {

template <class From_, class To_, class Layout_, class Result_, int dim_, int threads_, int... extents_> struct Case {
  using From = From_;
  using To = To_;
  using Layout = Layout_;
  using Result = Result_;
  static constexpr int dim = dim_, threads = threads_;
  tl::ScanWorkspace<To, extents_...> workspace;
  template <class T> static TL_DEVICE auto view(T* data) { return tl::tensor<tl::Aligned<4>>(data, 5, extents_...); }
  // Result `which` as a place.
  template <class T> static TL_DEVICE auto place(T* data, int which) {
    if constexpr (sizeof...(extents_) == 1)
      return view(data)(which, tl::all).tile(0);
    else
      return view(data)(which, tl::all, tl::all).tile(0, 0);
  }
};

// Forwards, backwards, the maximum both ways, and in place.
template <class Case>
__global__ void __launch_bounds__(Case::threads)
    fragments(const typename Case::From* X_data, typename Case::To* Y_data) {
  constexpr int dim = Case::dim, threads = Case::threads;
  auto& workspace = tl::shared<Case>().workspace;
  tl::Fragment<typename Case::From, typename Case::Layout> x;
  tl::Fragment<typename Case::To, typename Case::Result> y;
  tl::Fragment<typename Case::To, typename Case::Layout> z;
  tl::copy(Case::place(X_data, 0), x);
  tl::cumsum<dim, threads>(x, y, workspace);
  tl::copy(y, Case::place(Y_data, 0));
  tl::cumsum_reversed<dim, threads>(x, y, workspace);
  tl::copy(y, Case::place(Y_data, 1));
  tl::cummax<dim, threads>(x, y, workspace);
  tl::copy(y, Case::place(Y_data, 2));
  tl::cummax_reversed<dim, threads>(x, y, workspace);
  tl::copy(y, Case::place(Y_data, 3));
  tl::copy(x, z);
  tl::cumsum<dim, threads>(z, z, workspace);
  tl::copy(z, Case::place(Y_data, 4));
}

// The same from one shared tile to another, and in place.
template <class T, int M, int N, class Swizzle> struct Tiles {
  tl::SharedTile<T, M, N, Swizzle> from, to;
};
template <class T, int M, int N, class Swizzle, int dim> __global__ void tiles(const T* X_data, T* Y_data) {
  constexpr int threads = 128;
  auto& s = tl::shared<Tiles<T, M, N, Swizzle>>();
  const auto X = tl::tensor<tl::Aligned<4>>(X_data, M, N);
  const auto Y = tl::tensor<tl::Aligned<4>>(Y_data, 5, M, N);
  tl::copy<threads>(X.tile(0, 0), s.from);
  const auto store = [&](const auto& tile, int which) {
    tl::sync_threads();
    tl::copy<threads>(tile, Y(which, tl::all, tl::all).tile(0, 0));
    tl::sync_threads();
  };
  tl::sync_threads();
  tl::cumsum<dim, threads>(s.from, s.to), store(s.to, 0);
  tl::cumsum_reversed<dim, threads>(s.from, s.to), store(s.to, 1);
  tl::cummax<dim, threads>(s.from, s.to), store(s.to, 2);
  tl::cummax_reversed<dim, threads>(s.from, s.to), store(s.to, 3);
  tl::cumsum<dim, threads>(s.from, s.from), store(s.from, 4);
}

template <class Case> tl_status run(const void* X, void* Y) {
  return tl::launch<Case>(fragments<Case>, dim3(1), Case::threads, nullptr, static_cast<const typename Case::From*>(X),
                          static_cast<typename Case::To*>(Y));
}
template <class T, int M, int N, class Swizzle, int dim> tl_status run_tiles(const void* X, void* Y) {
  return tl::launch<Tiles<T, M, N, Swizzle>>(tiles<T, M, N, Swizzle, dim>, dim3(1), 128, nullptr,
                                             static_cast<const T*>(X), static_cast<T*>(Y));
}

}  // namespace scans

#define TL_CASE(name, ...) \
  extern "C" tl_status name(const void* X, void* Y) { return scans::run<scans::Case<__VA_ARGS__>>(X, Y); }
#define TL_TILES(name, ...) \
  extern "C" tl_status name(const void* X, void* Y) { return scans::run_tiles<__VA_ARGS__>(X, Y); }
using tl::Blocked;
using tl::half;
using tl::Shape;
using Mma = tl::MmaAccumulator<64, 48, tl::Warps<2, 2>>;
using Square = Blocked<Shape<64, 48>, Shape<16, 8>, 2>;
using Line = Blocked<Shape<1000>, Shape<128>, 4>;
using OddLine = Blocked<Shape<37>, Shape<32>, 1>;
using Odd = Blocked<Shape<21, 13>, Shape<8, 4>, 1>;
TL_CASE(line, float, float, Line, Line, 0, 128, 1000)
TL_CASE(odd_line, half, half, OddLine, tl::Replicated<Shape<37>>, 0, 64, 37)
TL_CASE(mma_0, float, float, Mma, Square, 0, 128, 64, 48)
TL_CASE(mma_1, half, float, Mma, Mma, 1, 128, 64, 48)
TL_CASE(odd_0, int, int, Odd, Odd, 0, 64, 21, 13)
TL_CASE(odd_1, int, float, Odd, Odd, 1, 32, 21, 13)
TL_TILES(tile_0, float, 20, 64, tl::Swizzle128B, 0)
TL_TILES(tile_1, half, 64, 72, tl::Padded<16>, 1)
