// Tiles that go from a tensor to shared memory and back by TMA: up to five dimensions, each swizzle, ragged edges.
#include <tl/tl.h>

namespace boxes {

constexpr int threads = 128;

template <class Tile> struct Shared {
  Tile tile[1];
  tl::TmaBarriers<1> barriers;
};

// The tile at `from` of a tensor, element by element, to `out`: what the swizzle put where is undone by tile(i, j).
template <class Tile, int rank>
__global__ void load(const __grid_constant__ tl::TensorMap map, tl::At<rank> from, typename Tile::type* out) {
  auto& shared = tl::shared<Shared<Tile>>();
  const tl::TmaPipeline<1, threads> pipeline(shared.barriers, tl::bytes(shared.tile[0]));
  if (tl::thread() == 0) {
    pipeline.init();
    tl::mbarrier_init_fence();
  }
  tl::sync_threads();
  if (tl::is_producer<threads>()) {
    if (tl::thread() == threads) tl::tma_load(map, from, shared.tile[0], pipeline.producer_acquire(0));
    return;
  }
  pipeline.consumer_wait(0);
  for (int i = tl::thread(); i < Tile::rows * Tile::cols; i += threads)
    out[i] = shared.tile[0](i / Tile::cols, i % Tile::cols);
}

template <class Tile, class Along, int rank, class... Extents>
int run_load(const void* data, void* out, tl::At<rank> from, Extents... extents) {
  return tl::launch<Shared<Tile>>(load<Tile, rank>, dim3(1), threads + tl::producer_threads, nullptr,
                                  tl::tensor_map<Tile, Along>(data, extents...), from,
                                  static_cast<typename Tile::type*>(out));
}

// A fragment that holds (8 * row + column) % 1000 to the tile at `to`.
template <class Staging, class Along, int rank>
__global__ void store(const __grid_constant__ tl::TensorMap map, tl::At<rank> to) {
  constexpr int M = Staging::rows, N = Staging::cols;
  using Layout = tl::WgmmaAccumulator<M, N, 1>;
  auto& shared = tl::shared<Shared<Staging>>();
  tl::Fragment<float, Layout> fragment;
  tl::parallel(Layout{}, [&](auto i, auto j) { fragment(i, j) = float((i * 8 + j) % 1000); });
  tl::tma_store<Along>(fragment, shared.tile[0], map, to);
}

template <class Staging, class Along, int rank, class... Extents>
int run_store(void* data, tl::At<rank> to, Extents... extents) {
  return tl::launch<Shared<Staging>>(store<Staging, Along, rank>, dim3(1), threads, nullptr,
                                     tl::tensor_map<Staging, Along>(data, extents...), to);
}

template <class S> using Tile32x64 = tl::SharedTile<tl::half, 32, 64, S>;
using FloatTile = tl::SharedTile<float, 16, 64, tl::Swizzle128B>;

}  // namespace boxes

// Extents and corner outermost first.
extern "C" int boxes_load(int which, const void* data, void* out, const int* e, const int* at) {
  using namespace boxes;
  const auto at2 = tl::At<2>{{at[0], at[1]}};
  const auto at4 = tl::At<4>{{at[0], at[1], at[2], at[3]}};
  switch (which) {
    case 0:
      return run_load<Tile32x64<tl::Swizzle128B>, tl::LastDims>(data, out, at2, e[0], e[1]);
    case 1:
      return run_load<Tile32x64<tl::Swizzle64B>, tl::LastDims>(data, out, at2, e[0], e[1]);
    case 2:
      return run_load<Tile32x64<tl::Swizzle32B>, tl::LastDims>(data, out, at2, e[0], e[1]);
    case 3:
      return run_load<Tile32x64<tl::NoSwizzle>, tl::LastDims>(data, out, at2, e[0], e[1]);
    case 4:
      return run_load<FloatTile, tl::LastDims>(data, out, at2, e[0], e[1]);
    case 5:
      return run_load<Tile32x64<tl::Swizzle128B>, tl::LastDims>(data, out, tl::At<3>{{at[0], at[1], at[2]}}, e[0], e[1],
                                                                e[2]);
    case 6:
      return run_load<Tile32x64<tl::Swizzle64B>, tl::Dims<1, 3>>(data, out, at4, e[0], e[1], e[2], e[3]);
    case 7:
      return run_load<Tile32x64<tl::Swizzle128B>, tl::Dims<0, 4>>(
          data, out, tl::At<5>{{at[0], at[1], at[2], at[3], at[4]}}, e[0], e[1], e[2], e[3], e[4]);
  }
  return -1;
}
extern "C" int boxes_store(int which, void* data, const int* e, const int* at) {
  using namespace boxes;
  const auto at2 = tl::At<2>{{at[0], at[1]}};
  const auto at4 = tl::At<4>{{at[0], at[1], at[2], at[3]}};
  switch (which) {
    case 0:
      return run_store<tl::StagingTile<tl::half, 64, 128, tl::Swizzle128B>, tl::LastDims>(data, at2, e[0], e[1]);
    case 1:
      return run_store<tl::StagingTile<tl::half, 128, 64, tl::Swizzle64B>, tl::LastDims>(data, at2, e[0], e[1]);
    case 2:
      return run_store<tl::StagingTile<tl::half, 64, 48, tl::Swizzle32B>, tl::LastDims>(data, at2, e[0], e[1]);
    case 3:
      return run_store<tl::StagingTile<tl::half, 64, 24, tl::NoSwizzle>, tl::LastDims>(data, at2, e[0], e[1]);
    case 4:
      return run_store<tl::StagingTile<float, 64, 32, tl::Swizzle128B>, tl::LastDims>(data, at2, e[0], e[1]);
    case 5:
      return run_store<tl::StagingTile<tl::half, 64, 64, tl::Swizzle128B>, tl::Dims<1, 3>>(data, at4, e[0], e[1], e[2],
                                                                                           e[3]);
  }
  return -1;
}
