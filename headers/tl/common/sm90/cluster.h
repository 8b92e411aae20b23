// Operations on the shared memory of other blocks of a cluster, and cluster launches.
#pragma once
#include "../copy.h"
#include "tma_copy.h"
#ifndef __CUDACC_RTC__
#include "../launch.h"
#endif

namespace tl {

// A set of blocks of a cluster: bit i of the mask is the block of rank i.
template <unsigned mask_> struct Blocks {
  static_assert(mask_ != 0 && mask_ < 256, "a cluster has at most 8 blocks");
  static constexpr unsigned mask = mask_;
  static TL_DEVICE constexpr int first() {
    int rank = 0;
    while (!(mask >> rank & 1)) ++rank;
    return rank;
  }
  static TL_DEVICE bool has(int rank) { return mask >> rank & 1; }
};
template <unsigned mask> constexpr Blocks<mask> blocks{};

// As tl::tma_load, multicast to the blocks of the mask: see tma_load_box_to. Called by: one thread of the cluster.
template <unsigned mask, int rank, class Tile>
TL_DEVICE void tma_load(const TensorMap& map, At<rank> from, Tile& to, Barrier& barrier, Blocks<mask>) {
  TL_UNROLL
  for (int col = 0; col < Tile::cols; col += BoxCols<Tile>::value) {
    tma_load_box_to(mask, to.data + Tile::rows * col, map, from.coordinate, barrier);
    from.coordinate[rank - 1] = wrapping_add(from.coordinate[rank - 1], BoxCols<Tile>::value);
  }
}

// The same, issued by the first of these blocks for all of them. Called by: one thread of each of them, with the same
// coordinates; its `barrier` expects the bytes.
template <unsigned mask, int rank, class Tile>
TL_DEVICE void tma_load_for(Blocks<mask> blocks, const TensorMap& map, const At<rank>& from, Tile& to,
                            Barrier& barrier) {
  if (block_rank() == blocks.first()) tma_load(map, from, to, barrier, blocks);
}

// As tl::tma_copy, but the first of these blocks loads the tile, at its own coordinates, for all of them by multicast;
// other blocks load their own. Each block expects the bytes on its own barrier. No thread of these blocks may still
// access the tile. Called by: any threads that execute tile operations, in every block; thread 0 issues it.
template <unsigned mask, int rank, class Tile>
TL_DEVICE void tma_copy(const TensorMap& map, const At<rank>& from, Tile& to, Barrier& barrier, Blocks<mask> blocks) {
  if (thread() != 0) return;
  mbarrier_expect(barrier, int(sizeof(Tile)));
  const int own = block_rank();
  if (own == blocks.first())
    tma_load(map, from, to, barrier, blocks);
  else if (!blocks.has(own))
    tma_load(map, from, to, barrier);
}

// The same after a cluster barrier, which orders earlier accesses to the tile before the load; returns when the tile
// has arrived. `barrier` counts an arrival of each thread of the block. Called by: every thread of the cluster.
template <unsigned mask, int rank, class Tile>
TL_DEVICE void copy_to_blocks(const TensorMap& map, const At<rank>& from, Tile& to, Barrier& barrier,
                              Blocks<mask> blocks) {
  sync_cluster();
  tma_copy(map, from, to, barrier, blocks);
  mbarrier_arrive_and_wait(barrier);
}

// A tile, or a part of a tile, in another block of the cluster.
template <class Tile> struct InBlock {
  static constexpr bool is_whole = true;
  static TL_DEVICE Tile& of(Tile& own, int rank) { return in_block(own, rank); }
};
template <class Tile, int rows, int cols> struct InBlock<const SubTile<Tile, rows, cols>> {
  static constexpr bool is_whole = false;
  static TL_DEVICE const SubTile<Tile, rows, cols> of(const SubTile<Tile, rows, cols>& own, int rank) {
    return {&in_block(*own.tile, rank), own.first_row, own.first_col};
  }
};
template <class Tile, int n, class Start> struct InBlock<const SubTile1D<Tile, n, Start>> {
  static constexpr bool is_whole = false;
  static TL_DEVICE const SubTile1D<Tile, n, Start> of(const SubTile1D<Tile, n, Start>& own, int rank) {
    return {&in_block(*own.tile, rank), own.first};
  }
};
// Whether one bulk copy moves exactly the tile: no padding, and a size that is a multiple of 16 bytes.
template <class From, class To>
constexpr bool is_copy_of_bytes = std::is_same<From, To>::value && InBlock<To>::is_whole && sizeof(To) % 16 == 0 &&
                                  int(sizeof(To)) == bytes_of<typename To::type>(To::rows * To::cols);

// Copies a shared tile, or a part, to the address of `to` in the block with this rank. Contains no barrier: a cluster
// barrier must precede it, after that block's last access to `to`, and another must follow before that block reads it.
// Called by: `threads` threads of the block, from thread 0 on.
template <int threads, class From, class To> TL_DEVICE void copy_to_block(int rank, const From& from, To& to) {
  auto&& there = InBlock<To>::of(to, rank);
  copy<threads>(from, there);
}

// Copies a shared tile to the address of `to` in the block with this rank, and arrives once at that block's barrier:
// the phase completes when the tile has arrived, which mbarrier_wait_cluster waits for. Called by: every thread that
// executes tile operations. Until then `from` must not be written, and this block must not exit.
template <int threads, class From, class To>
TL_DEVICE void copy_to_block(int rank, const From& from, To& to, Barrier& barrier) {
  if constexpr (is_copy_of_bytes<From, To>) {
    fence_async_proxy();  // this thread's writes to `from` are visible to TMA
    sync_threads();       // so are all threads' writes
    if (thread() != 0) return;
    mbarrier_arrive_expect(barrier, int(sizeof(To)), rank);
    bulk_copy_to(rank, &to, &from, int(sizeof(To)), barrier);
  } else {
    sync_threads();
    copy_to_block<threads>(rank, from, to);
    sync_threads();
    if (thread() == 0) mbarrier_arrive(barrier, rank);
  }
}

#ifndef __CUDACC_RTC__
// As tl::launch, with thread block clusters of this shape, which is also the kernel's __cluster_dims__.
// TL_NOT_SUPPORTED if the clusters do not divide the grid.
template <class... Parameters>
tl_status launch_clusters_with(void (*kernel)(Parameters...), dim3 cluster, dim3 grid, int threads, size_t shared_bytes,
                               void* stream, typename ArgumentFor<Parameters>::type... arguments) {
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z) return TL_NOT_SUPPORTED;
  tl_status status;
  if (!starts(grid, status, arguments...)) return status;
  return status_of(launch_kernel_in_clusters(kernel, cluster, grid, dim3(threads), shared_bytes, stream, arguments...));
}
template <class Shared, class... Parameters>
tl_status launch_clusters(void (*kernel)(Parameters...), dim3 cluster, dim3 grid, int threads, void* stream,
                          typename ArgumentFor<Parameters>::type... arguments) {
  return launch_clusters_with(kernel, cluster, grid, threads, sizeof(Shared), stream, arguments...);
}
template <class... Parameters>
tl_status launch_clusters(void (*kernel)(Parameters...), dim3 cluster, dim3 grid, int threads, void* stream,
                          typename ArgumentFor<Parameters>::type... arguments) {
  return launch_clusters_with(kernel, cluster, grid, threads, 0, stream, arguments...);
}
#endif

}  // namespace tl
