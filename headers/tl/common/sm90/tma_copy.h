// TMA copies of tiles between global and shared memory, and from registers to global memory.
#pragma once
#include "../copy.h"
#include "../fragment.h"
#include "boxes.h"
#include "tma_pipeline.h"
#include "wgmma_accumulator.h"

namespace tl {

// Issues the load of the tile at these coordinates of all the tensor's dimensions; its bytes complete on `barrier`,
// which expects them. Out-of-bounds elements are zero. Called by: one thread, such as the one that TmaPipeline's
// producer elects.
template <int rank, class Tile>
TL_DEVICE void tma_load(const TensorMap& map, At<rank> from, Tile& to, Barrier& barrier) {
  TL_UNROLL
  for (int col = 0; col < Tile::cols; col += BoxCols<Tile>::value) {
    tma_load_box(to.data + Tile::rows * col, map, from.coordinate, barrier);
    from.coordinate[rank - 1] = wrapping_add(from.coordinate[rank - 1], BoxCols<Tile>::value);
  }
}

// Issues the load of a tile, and adds its bytes to the phase of the user's barrier, which completes when the bytes and
// all arrivals are in. Called by: any threads that execute tile operations; thread 0 issues it.
template <int rank, class Tile>
TL_DEVICE void tma_copy(const TensorMap& map, const At<rank>& from, Tile& to, Barrier& barrier) {
  if (thread() != 0) return;
  mbarrier_expect(barrier, int(sizeof(Tile)));
  tma_load(map, from, to, barrier);
}

// The same for columns of a tile that are whole slabs of it.
template <int rank, class Tile, int rows, int cols>
TL_DEVICE void tma_copy(const TensorMap& map, At<rank> from, const SubTile<Tile, rows, cols>& to, Barrier& barrier) {
  constexpr int slab_cols = Tile::slab_cols;
  static_assert(rows == Tile::rows && cols % slab_cols == 0, "TMA fills whole slabs");
  if (thread() != 0) return;
  mbarrier_expect(barrier, rows * cols * int(sizeof(typename Tile::type)));
  TL_UNROLL
  for (int col = 0; col < cols; col += slab_cols) {
    tma_load_box(to.tile->data + rows * (to.first_col + col), map, from.coordinate, barrier);
    from.coordinate[rank - 1] = wrapping_add(from.coordinate[rank - 1], slab_cols);
  }
}

// Issues the TMA store of a tile at these coordinates and commits it as a group of its own; out-of-bounds elements are
// not written. TMA reads the tile until block_tma_store_wait_read; what threads wrote there must be ordered by a
// fence_async_proxy and a barrier. Where a box's coordinate saturates, no tensor has an element, and TMA stores
// nothing; a coordinate that wraps to a negative one is an illegal instruction (H200, 2026-11-26). Called by: any
// threads that execute tile operations; thread 0 issues it.
template <class Tile, int rank> TL_DEVICE void tma_copy(const Tile& from, const TensorMap& map, At<rank> to) {
  if (thread() != 0) return;
  TL_UNROLL
  for (int col = 0; col < Tile::cols; col += BoxCols<Tile>::value) {
    tma_store_box(map, to.coordinate, from.data + Tile::rows * col);
    to.coordinate[rank - 1] = saturating_add(to.coordinate[rank - 1], BoxCols<Tile>::value);
  }
  tma_store_commit();
}

// The same for columns of a tile that are whole slabs of it.
template <class Tile, int rows, int cols, int rank>
TL_DEVICE void tma_copy(const SubTile<Tile, rows, cols>& from, const TensorMap& map, At<rank> to) {
  constexpr int slab_cols = Tile::slab_cols;
  static_assert(rows == Tile::rows && cols % slab_cols == 0, "TMA stores whole slabs");
  if (thread() != 0) return;
  TL_UNROLL
  for (int col = 0; col < cols; col += slab_cols) {
    tma_store_box(map, to.coordinate, from.tile->data + rows * (from.first_col + col));
    to.coordinate[rank - 1] = saturating_add(to.coordinate[rank - 1], slab_cols);
  }
  tma_store_commit();
}

// Commits the stores issued since the last commit, if any, as a group. Called by: as above.
TL_DEVICE void block_tma_store_commit() {
  if (thread() == 0) tma_store_commit();
}

// Waits until all but the last n groups have read their tiles, or have completed: their elements are visible. After a
// barrier that follows, all threads may write the tiles. Called by: as above; the thread that issued them waits.
template <int n> TL_DEVICE void block_tma_store_wait_read() {
  if (thread() == 0) tma_store_wait_read<n>();
}
template <int n> TL_DEVICE void block_tma_store_wait() {
  if (thread() == 0) tma_store_wait<n>();
}

// Initialises the user's barriers: a phase of barrier i expects arrivals[i]. Called by: every thread of the block,
// before a barrier of the block.
template <int n> TL_DEVICE void mbarrier_init_all(Barrier (&barriers)[n], const int (&arrivals)[n]) {
  if (thread_of_block() != 0) return;
  TL_UNROLL
  for (int i = 0; i < n; ++i) mbarrier_init(barriers[i], arrivals[i]);
  mbarrier_init_fence();
}

// Loads a shared tile to an accumulator's layout; 16-bit elements by ldmatrix.x4. Called by: the threads of the layout,
// in whole warps.
template <class Tile, class T, int M, int N, int along_m, int along_n>
TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> copy(const Tile& from,
                                                      Fragment<T, WgmmaAccumulator<M, N, along_m, along_n>>& to) {
  using Layout = WgmmaAccumulator<M, N, along_m, along_n>;
  using U = typename Tile::type;
  if constexpr (sizeof(U) == 2 && Layout::n_tiles % 2 == 0 && Tile::chunk_bytes == 16) {
    TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) {
      TL_UNROLL
      for (int col = 0; col < Layout::own_cols; col += 16) {  // 16 rows x 16 columns are the four matrices
        uint32_t pairs[4];
        ldmatrix_x4(pairs, from.at(Layout::warp_row(m) + lane() % 16, Layout::first_col() + col + lane() / 16 * 8));
        T* const reg = to.reg + m * Layout::tile_registers + col / 2;
        TL_UNROLL
        for (int i = 0; i < 4; ++i) InRegisters<T, 2>{reg + 2 * i}.store(convert<T>(bit_cast<Vec<U, 2>>(pairs[i])));
      }
    }
  } else {
    load_fragment<vector_in<Layout, Tile>()>(from, to);
  }
}

// The same for a tile that is stored as columns x rows, by ldmatrix.x4.trans.
template <class Tile, class T, int M, int N, int along_m, int along_n>
TL_DEVICE void copy(const Transposed<Tile>& from, Fragment<T, WgmmaAccumulator<M, N, along_m, along_n>>& to) {
  using Layout = WgmmaAccumulator<M, N, along_m, along_n>;
  using U = typename Tile::type;
  static_assert(Tile::rows == N && Tile::cols == M, "the tile has the transposed shape");
  static_assert(sizeof(U) == 2 && Layout::n_tiles % 2 == 0 && Tile::chunk_bytes == 16,
                "whole 8x8 matrices of 16-bit elements");
  TL_UNROLL
  for (int m = 0; m < Layout::m_tiles; ++m) {
    TL_UNROLL
    for (int col = 0; col < Layout::own_cols; col += 16) {
      uint32_t pairs[4];
      const int stored_row = Layout::first_col() + col + lane() / 16 * 8 + lane() % 8;
      ldmatrix_x4_trans(pairs, from.tile.at(stored_row, Layout::warp_row(m) + lane() / 8 % 2 * 8));
      T* const reg = to.reg + m * Layout::tile_registers + col / 2;
      TL_UNROLL
      for (int i = 0; i < 4; ++i) InRegisters<T, 2>{reg + 2 * i}.store(convert<T>(bit_cast<Vec<U, 2>>(pairs[i])));
    }
  }
}

// Stages columns first .. first + cols of those that this thread's warpgroup holds, for the rows of its warp in m tile
// m. Column `before` of the fragment is the tile's first.
template <int first, int cols, int before, class T, class Layout, class Tile>
TL_DEVICE void stage_rows(const Fragment<T, Layout>& from, Tile& to, int m) {
  using U = typename Tile::type;
  const T* const reg = from.reg + m * Layout::tile_registers;
  if constexpr (sizeof(U) == 2 && cols % 16 == 0) {  // 16 rows x 16 columns are four 8x8 matrices
    TL_UNROLL
    for (int col = first; col < first + cols; col += 16) {
      uint32_t pairs[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) pairs[i] = bit_cast<uint32_t>(convert<U>(load_elements<2, 1>(reg + col / 2 + i * 2)));
      stmatrix_x4(to.at(Layout::warp_row(m) + lane() % 16, Layout::first_col() + col - before + lane() / 16 * 8),
                  pairs);
    }
  } else {
    TL_UNROLL
    for (int r = first / 2; r < (first + cols) / 2; r += 2) {
      const int row = Layout::warp_row(m) + r / 2 % 2 * 8 + lane() / 4;
      const int col = Layout::first_col() + r / 4 * 8 - before + lane() % 4 * 2;
      to.template packet<2>(row, col) = load_elements<2, 1>(reg + r);
    }
  }
}

// Stages the rows of this warp as columns of a tile, 16 x 16 elements per stmatrix.
template <class T, class Layout, class Tile>
TL_DEVICE void stage_transposed(const Fragment<T, Layout>& from, Tile& to) {
  using U = typename Tile::type;
  static_assert(sizeof(U) == 2 && Layout::own_cols % 16 == 0, "stmatrix stores 8x8 matrices of 16-bit elements");
  TL_UNROLL
  for (int m = 0; m < Layout::m_tiles; ++m) {
    TL_UNROLL
    for (int col = 0; col < Layout::own_cols; col += 16) {
      const T* const reg = from.reg + m * Layout::tile_registers + col / 2;
      uint32_t pairs[4];
      TL_UNROLL
      for (int i = 0; i < 4; ++i) pairs[i] = bit_cast<uint32_t>(convert<U>(load_elements<2, 1>(reg + 2 * i)));
      const int row = Layout::warp_row(m) + lane() / 8 % 2 * 8;
      stmatrix_x4_transposed(to.at(Layout::first_col() + col + lane() / 16 * 8 + lane() % 8, row), pairs);
    }
  }
}

// Stages a box (the rows of this warp in one m tile, and one slab) and issues its store or reduction; then the boxes
// after it. A tile with fewer columns than the fragment is reused from its first slab on, each box after TMA has read
// its previous contents.
template <class Along, int box, bool adds, class T, class Layout, class Tile, int rank>
TL_DEVICE void store_boxes(const Fragment<T, Layout>& from, Tile& staging, const TensorMap& map, const At<rank>& to) {
  static_assert(Tile::cols == Layout::N || Layout::own_cols == Layout::N,
                "warpgroups that share rows stage all columns");
  static_assert(Layout::own_cols % Tile::slab_cols == 0, "a warpgroup stages whole slabs");
  constexpr int m = box % Layout::m_tiles, first = box / Layout::m_tiles * Tile::slab_cols;
  constexpr int before = first / Tile::cols * Tile::cols;
  if constexpr (before > 0) {
    constexpr int boxes = Tile::cols / Tile::slab_cols * Layout::m_tiles;  // per warp, in the tile
    if (lane() == 0) tma_store_wait_read<boxes - 1>();
    sync_warp();
  }
  stage_rows<first, Tile::slab_cols, before>(from, staging, m);
  fence_async_proxy();  // this lane's writes are visible to TMA
  sync_warp();          // so are the other lanes' writes
  if (lane() == 0) {
    At<rank> corner = to;
    int &row = corner.coordinate[RowDim<Along, rank>::value], &col = corner.coordinate[rank - 1];
    row = saturating_add(row, Layout::warp_row(m));
    col = saturating_add(col, Layout::first_col() + first);
    const void* const rows = staging.at(Layout::warp_row(m), Layout::first_col() + first - before);
    if constexpr (adds)
      tma_add_box(map, corner.coordinate, rows);
    else
      tma_store_box(map, corner.coordinate, rows);
    tma_store_commit();
  }
  if constexpr ((box + 1) / Layout::m_tiles * Tile::slab_cols < Layout::own_cols)
    store_boxes<Along, box + 1, adds>(from, staging, map, to);
}

// Waits until TMA has read this warp's rows of its staging tile (cp.async.bulk.wait_group.read 0): they may be
// overwritten, or the block may exit. Called by: whole warps.
TL_DEVICE void tma_store_wait_read() {
  if (lane() == 0) tma_store_wait_read<0>();
  sync_warp();
}

// Waits until this warp's stores have completed (cp.async.bulk.wait_group 0): later ones may write the same elements.
// Called by: whole warps.
TL_DEVICE void tma_store_wait() {
  if (lane() == 0) tma_store_wait<0>();
  sync_warp();
}

// Whether TMA can address rows of this alignment (tl::Aligned, tl::AnyAlignment).
template <class Start> constexpr bool tma_can_address = Start::alignment == 16;

// Issues the TMA stores of a fragment to the tile at these coordinates; out-of-bounds elements are not written. Each
// warp stages and stores its own rows slab by slab, without waiting for other warps. `staging` has the columns of the
// fragment, or fewer and is then reused. TMA reads it until tl::tma_store_wait_read. `Along`: as in tl::tensor_map.
// Called by: every thread of the fragment's layout.
template <class Along = LastDims, class T, class Layout, class U, int cols, class Swizzle, int rank>
TL_DEVICE void tma_store_start(const Fragment<T, Layout>& from, StagingTile<U, Layout::M, cols, Swizzle>& staging,
                               const TensorMap& map, const At<rank>& to) {
  static_assert(is_wgmma_accumulator<Layout>, "a fragment that TMA stores has the layout of a WgmmaAccumulator");
  store_boxes<Along, 0, false>(from, staging, map, to);
}
// The same as a reduction: adds a float fragment to the tile, each element atomically.
template <class Along = LastDims, class Layout, int cols, class Swizzle, int rank>
TL_DEVICE void tma_add_start(const Fragment<float, Layout>& from, StagingTile<float, Layout::M, cols, Swizzle>& staging,
                             const TensorMap& map, const At<rank>& to) {
  static_assert(is_wgmma_accumulator<Layout>, "a fragment that TMA adds has the layout of a WgmmaAccumulator");
  store_boxes<Along, 0, true>(from, staging, map, to);
}
// The same, and waits until TMA has read `staging`: it may be overwritten.
template <class Along = LastDims, class T, class Layout, class U, int cols, class Swizzle, int rank>
TL_DEVICE void tma_store(const Fragment<T, Layout>& from, StagingTile<U, Layout::M, cols, Swizzle>& staging,
                         const TensorMap& map, const At<rank>& to) {
  tma_store_start<Along>(from, staging, map, to);
  tma_store_wait_read();
}

// Stores a fragment's transpose, tl::transposed(fragment), to the tile at these coordinates. All warps stage their rows
// as columns, then one thread issues the store; returns when TMA has read `staging`. `Along`: as above.
// Called by: every thread of the fragment's layout, which are all threads of the block except the producer's.
template <class Along = LastDims, class T, class Layout, class U, class Swizzle, int rank>
TL_DEVICE void tma_store(const Transposed<Fragment<T, Layout>>& from,
                         SharedTile<U, Layout::N, Layout::M, Swizzle>& staging, const TensorMap& map,
                         const At<rank>& to) {
  static_assert(is_wgmma_accumulator<Layout>, "a fragment that TMA stores has the layout of a WgmmaAccumulator");
  constexpr int threads = Layout::M / Layout::own_rows * (Layout::N / Layout::own_cols) * warpgroup_warps * warp_size;
  stage_transposed(from.tile, staging);
  sync_consumers<threads>();
  tma_copy(staging, map, to);
  block_tma_store_wait_read<0>();
  sync_readers<threads>();
}

}  // namespace tl
