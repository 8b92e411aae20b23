// Tiles between global memory and shared memory, and from registers to global memory, by TMA.
#pragma once
#include "../fragment.h"
#include "tensor_map.h"
#include "wgmma_accumulator.h"

namespace tl {

// Coordinates in a tensor, outermost first.
template <int rank> struct At {
  int coordinate[rank];
};
template <class... I> TL_DEVICE At<sizeof...(I)> at(const I&... i) { return {{static_cast<int>(i)...}}; }

// Starts to load the tile at these coordinates of all the tensor's dimensions; it arrives at `barrier`, which expects
// its bytes. Elements outside of the tensor become zero. Who: one thread; TmaPipeline::produce elects it.
template <int rank, class Tile> TL_DEVICE void tma_load(const TensorMap& map, At<rank> from, Tile& to, Barrier& barrier) {
  TL_UNROLL for (int panel = 0; panel < Tile::cols / Tile::panel_cols; ++panel) {
    tma_load_box(to.data + panel * (Tile::rows * Tile::panel_cols), map, from.coordinate, barrier);
    from.coordinate[rank - 1] += Tile::panel_cols;
  }
}

// The rows of this thread's warp in m tile m, as the 16-byte chunks of `to`.
template <class T, class Layout, class Tile>
TL_DEVICE void stage_rows(const Fragment<T, Layout>& from, Tile& to, int m) {
  using U = typename Tile::type;
  const T* const reg = from.reg + m * Layout::tile_registers;
  constexpr bool by_matrices = sizeof(U) == 2 && Layout::n_tiles % 2 == 0;
  if constexpr (by_matrices) {  // 16 rows x 16 columns are four 8x8 matrices
    TL_UNROLL for (int n = 0; n < Layout::n_tiles; n += 2) {
      uint32_t pairs[4];
      TL_UNROLL for (int i = 0; i < 4; ++i) pairs[i] =
          bit_cast<uint32_t>(convert<U>(load_elements<2, 1>(reg + n * 4 + i * 2)));
      stmatrix_x4(to.at(Layout::warp_row(m) + lane() % 16, n * 8 + lane() / 16 * 8), pairs);
    }
  } else {
    TL_UNROLL for (int r = 0; r < Layout::tile_registers; r += 2) {
      const int row = Layout::warp_row(m) + r / 2 % 2 * 8 + lane() / 4, col = r / 4 * 8 + lane() % 4 * 2;
      to.template packet<2>(row, col) = load_elements<2, 1>(reg + r);
    }
  }
}

// Stores a fragment to the tile at these coordinates; what lies outside of the tensor is dropped. Each warp stages its
// own rows and stores them, and waits for no other. When this returns, `staging` has been read and may be written again.
// `Along`: as in tl::tensor_map. Who: every thread of the fragment's layout.
template <class Along = LastDims, class T, class Layout, class U, class Swizzle, int rank>
TL_DEVICE void tma_store(const Fragment<T, Layout>& from, StagingTile<U, Layout::M, Layout::N, Swizzle>& staging,
                         const TensorMap& map, const At<rank>& to) {
  using Tile = StagingTile<U, Layout::M, Layout::N, Swizzle>;
  TL_UNROLL for (int m = 0; m < Layout::m_tiles; ++m) stage_rows(from, staging, m);
  fence_async_proxy();  // TMA sees what this lane wrote,
  sync_warp();          // and what the others wrote
  if (lane() == 0) {
    TL_UNROLL for (int m = 0; m < Layout::m_tiles; ++m) {
      TL_UNROLL for (int panel = 0; panel < Tile::cols / Tile::panel_cols; ++panel) {
        At<rank> box = to;
        box.coordinate[RowDim<Along, rank>::value] += Layout::warp_row(m);
        box.coordinate[rank - 1] += panel * Tile::panel_cols;
        tma_store_box(map, box.coordinate, staging.at(Layout::warp_row(m), panel * Tile::panel_cols));
      }
    }
    tma_store_commit();
    tma_store_wait_read<0>();
  }
  sync_warp();
}

}  // namespace tl
