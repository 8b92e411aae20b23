// Blocks of a cluster that reach one another: places, barriers, loads to several blocks, copies between blocks.
#include <tl/tl.h>

namespace clusters {

constexpr int threads = 128;

// What each block leaves in shared memory, the block of the next rank writes out, with a number for who it is itself.
struct Ring {
  int mine[threads];
};
template <int x, int y, int z> __global__ void __cluster_dims__(x, y, z) __launch_bounds__(threads) ring(int* out) {
  auto& shared = tl::shared<Ring>();
  constexpr int blocks = x * y * z;
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x, rank = tl::block_rank();
  shared.mine[tl::thread()] = 1000 * block + tl::thread();
  tl::cluster_arrive();
  const int next = (rank + 1) % blocks;
  tl::cluster_wait();
  out[block * threads + tl::thread()] = tl::in_block(shared.mine, next)[tl::thread()] + 1000000 * rank;
  tl::sync_cluster();  // a block stays until it has been read
}

// All blocks add up in the first one's memory: each stores its row there, and its threads arrive at a barrier there.
template <int blocks> struct Meeting {
  int rows[blocks][threads];
  tl::Barrier there[1];
};
template <int blocks>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads) meeting(const int* in, int* out, int turns) {
  auto& shared = tl::shared<Meeting<blocks>>();
  tl::mbarrier_init_all(shared.there, {blocks * threads});
  tl::sync_cluster();
  const int rank = tl::block_rank(), cluster = blockIdx.x / blocks;
  for (int turn = 0; turn < turns; ++turn) {
    tl::in_block(shared.rows, 0)[rank][tl::thread()] = in[blockIdx.x * threads + tl::thread()] * (turn + 1);
    tl::mbarrier_arrive(shared.there[0], 0);
    if (rank == 0) {
      tl::mbarrier_wait_cluster(shared.there[0], turn & 1);
      int sum = 0;
      for (int row = 0; row < blocks; ++row) sum += shared.rows[row][tl::thread()];
      out[(cluster * turns + turn) * threads + tl::thread()] = sum;
    }
    tl::sync_cluster();
  }
}

// Tile after tile of a column of tiles: the first block of the mask loads for all of it, others for themselves.
template <class Tile> struct Loads {
  Tile tile[2];
  tl::Barrier there[2];
};
template <unsigned mask, int blocks, class Tile>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads)
    loads(const __grid_constant__ tl::TensorMap map, typename Tile::type* out, int turns) {
  auto& shared = tl::shared<Loads<Tile>>();
  tl::mbarrier_init_all(shared.there, {threads, threads});
  tl::sync_cluster();
  for (int turn = 0; turn < turns; ++turn) {
    const int slot = turn % 2;
    tl::tma_copy(map, tl::at(turn * Tile::rows - 3, int(blockIdx.x) * Tile::cols), shared.tile[slot],
                 shared.there[slot], tl::blocks<mask>);
    tl::mbarrier_arrive(shared.there[slot]);
    tl::mbarrier_wait(shared.there[slot], turn / 2 & 1);
    auto* const to = out + (blockIdx.x * turns + turn) * Tile::rows * Tile::cols;
    for (int i = tl::thread(); i < Tile::rows * Tile::cols; i += threads)
      to[i] = shared.tile[slot](i / Tile::cols, i % Tile::cols);
    tl::sync_cluster();
  }
}
template <unsigned mask, int blocks, class Tile>
int run_loads(const void* data, void* out, int rows, int columns, int turns) {
  return tl::launch_clusters<Loads<Tile>>(loads<mask, blocks, Tile>, dim3(blocks), dim3(2 * blocks), threads, nullptr,
                                          tl::tensor_map<Tile>(data, rows, columns),
                                          static_cast<typename Tile::type*>(out), turns);
}

// The same with no slots and barriers to look after.
template <class Tile> struct Waited {
  Tile tile;
  tl::Barrier there[1];
};
template <unsigned mask, int blocks, class Tile>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads)
    waited(const __grid_constant__ tl::TensorMap map, typename Tile::type* out, int turns) {
  auto& shared = tl::shared<Waited<Tile>>();
  tl::mbarrier_init_all(shared.there, {threads});
  tl::sync_cluster();
  for (int turn = 0; turn < turns; ++turn) {
    tl::copy_to_blocks(map, tl::at(turn * Tile::rows - 3, int(blockIdx.x) * Tile::cols), shared.tile, shared.there[0],
                       tl::blocks<mask>);
    auto* const to = out + (blockIdx.x * turns + turn) * Tile::rows * Tile::cols;
    for (int i = tl::thread(); i < Tile::rows * Tile::cols; i += threads)
      to[i] = shared.tile(i / Tile::cols, i % Tile::cols);
  }
  tl::sync_cluster();
}
template <unsigned mask, int blocks, class Tile>
int run_waited(const void* data, void* out, int rows, int columns, int turns) {
  return tl::launch_clusters<Waited<Tile>>(waited<mask, blocks, Tile>, dim3(blocks), dim3(2 * blocks), threads, nullptr,
                                           tl::tensor_map<Tile>(data, rows, columns),
                                           static_cast<typename Tile::type*>(out), turns);
}

// Each block hands its tile, or `rows` x `cols` of it from (4, 16) on, to the block of the next rank, which writes all
// of its own out.
template <class Tile> struct Handed {
  Tile mine, theirs;
  tl::Barrier there[1];
};
template <int blocks, int rows, int cols, class Tile>
__global__ void __cluster_dims__(blocks, 1, 1) __launch_bounds__(threads) handed(typename Tile::type* out, int turns) {
  using T = typename Tile::type;
  auto& shared = tl::shared<Handed<Tile>>();
  tl::mbarrier_init_all(shared.there, {1});
  for (int i = tl::thread(); i < Tile::rows * Tile::cols; i += threads)
    shared.theirs(i / Tile::cols, i % Tile::cols) = T(-1.0f);
  const int next = (tl::block_rank() + 1) % blocks;
  for (int turn = 0; turn < turns; ++turn) {
    for (int i = tl::thread(); i < Tile::rows * Tile::cols; i += threads)
      shared.mine(i / Tile::cols, i % Tile::cols) = T(float(i % 97 + 100 * tl::block_rank() + turn));
    tl::sync_cluster();
    if constexpr (rows == Tile::rows && cols == Tile::cols)
      tl::copy_to_block<threads>(next, shared.mine, shared.theirs, shared.there[0]);
    else
      tl::copy_to_block<threads>(next, tl::cols<cols>(tl::rows<rows>(shared.mine, 4), 16),
                                 tl::cols<cols>(tl::rows<rows>(shared.theirs, 4), 16), shared.there[0]);
    tl::mbarrier_wait_cluster(shared.there[0], turn & 1);
    T* const to = out + (blockIdx.x * turns + turn) * Tile::rows * Tile::cols;
    for (int i = tl::thread(); i < Tile::rows * Tile::cols; i += threads)
      to[i] = shared.theirs(i / Tile::cols, i % Tile::cols);
    tl::sync_cluster();  // the tiles have been read, and copied
  }
}
template <int blocks, int rows, int cols, class Tile> int run_handed(void* out, int turns) {
  return tl::launch_clusters<Handed<Tile>>(handed<blocks, rows, cols, Tile>, dim3(blocks), dim3(2 * blocks), threads,
                                           nullptr, static_cast<typename Tile::type*>(out), turns);
}

using Swizzled = tl::SharedTile<tl::half, 32, 64, tl::Swizzle128B>;
using TwoPanels = tl::SharedTile<tl::half, 16, 128, tl::Swizzle128B>;
using Plain = tl::SharedTile<float, 16, 32>;

}  // namespace clusters

extern "C" int clusters_ring(int which, void* out) {
  using namespace clusters;
  int* const to = static_cast<int*>(out);
  if (which == 0) return tl::launch_clusters<Ring>(ring<2, 1, 1>, dim3(2), dim3(6, 3), threads, nullptr, to);
  if (which == 1) return tl::launch_clusters<Ring>(ring<2, 2, 2>, dim3(2, 2, 2), dim3(4, 2, 4), threads, nullptr, to);
  if (which == 2) return tl::launch_clusters<Ring>(ring<1, 4, 1>, dim3(1, 4), dim3(3, 8), threads, nullptr, to);
  return tl::launch_clusters<Ring>(ring<2, 1, 1>, dim3(2), dim3(5), threads, nullptr, to);
}
extern "C" int clusters_meeting(const void* in, void* out, int turns) {
  using namespace clusters;
  return tl::launch_clusters<Meeting<4>>(meeting<4>, dim3(4), dim3(8), threads, nullptr, static_cast<const int*>(in),
                                         static_cast<int*>(out), turns);
}
extern "C" int clusters_loads(int which, const void* data, void* out, int rows, int columns, int turns) {
  using namespace clusters;
  if (which == 0) return run_loads<0b11, 2, Swizzled>(data, out, rows, columns, turns);
  if (which == 1) return run_loads<0b0110, 4, TwoPanels>(data, out, rows, columns, turns);
  if (which == 2) return run_loads<0b1011, 4, Plain>(data, out, rows, columns, turns);
  if (which == 3) return run_waited<0b0011, 4, Swizzled>(data, out, rows, columns, turns);
  return run_waited<0b1111, 4, Plain>(data, out, rows, columns, turns);
}
extern "C" int clusters_handed(int which, void* out, int turns) {
  using namespace clusters;
  if (which == 0) return run_handed<2, 32, 64, Swizzled>(out, turns);
  if (which == 1) return run_handed<4, 16, 32, Plain>(out, turns);
  if (which == 2) return run_handed<2, 5, 32, Swizzled>(out, turns);
  return run_handed<2, 7, 3, Plain>(out, turns);
}
