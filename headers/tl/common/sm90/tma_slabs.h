// A pipeline whose tiles are loaded in slabs of columns: an MMA starts when the first slab has arrived.
#pragma once
#include "../copy_async.h"
#include "tma_copy.h"
#include "tma_pipeline.h"
#include "wgmma_gemm.h"

namespace tl {

template <int stages, int slabs> struct TmaSlabBarriers {
  Barrier full[stages][slabs];  // a phase completes when the slab is filled
  Barrier empty[stages][2];     // a phase completes when a warpgroup has released its part
};

// As TmaPipeline, for tiles of `slabs` slabs. Two warpgroups each release a part: the first `first_part` slabs, and the
// others. Tile k is in stage k % stages.
template <int stages, int slabs, int first_part, int threads> class TmaSlabPipeline {
 public:
  static_assert(threads == 2 * warpgroup_warps * warp_size, "two warpgroups use the tiles");
  static_assert(0 < first_part && first_part < slabs, "each warpgroup has a part");
  static_assert(stages >= 2, "warpgroup 1 waits for tile k + 1 before it releases tile k");

  TL_DEVICE explicit TmaSlabPipeline(TmaSlabBarriers<stages, slabs>& barriers) : barriers_(barriers) {}
  // Initialises the barriers; mbarrier_init_fence and a block barrier must follow. So many threads fill a slab: one by
  // TMA, or the producer's warpgroup by tl::gather_slab. Called by: one thread.
  TL_DEVICE void init(int filling = 1) const {
    TL_UNROLL
    for (int stage = 0; stage < stages; ++stage) {
      TL_UNROLL
      for (int slab = 0; slab < slabs; ++slab) mbarrier_init(barriers_.full[stage][slab], filling);
      for (Barrier& empty : barriers_.empty[stage]) mbarrier_init(empty, warpgroup_warps);
    }
  }

  // Waits until warpgroup `part` has released its slabs of tile k - stages; for the first `stages` tiles does not wait.
  // Called by: each thread that fills slabs.
  TL_DEVICE void producer_acquire(int k, int part) const {
    mbarrier_wait(barriers_.empty[k % stages][part], (k / stages & 1) ^ 1);
  }
  // The barrier on which the load of this slab of tile k completes. Called by: as above.
  TL_DEVICE Barrier& full(int k, int slab) const { return barriers_.full[k % stages][slab]; }
  // Waits until this slab of tile k is filled. Called by: any thread.
  TL_DEVICE void consumer_wait(int k, int slab) const {
    mbarrier_wait(barriers_.full[k % stages][slab], k / stages & 1);
  }
  // Releases this warpgroup's part of tile k for this warp. It may be overwritten when all warps of the warpgroup have
  // released it: the other warpgroup's reads of the part, if there are any, must be complete before this one is called
  // (in a ping-pong loop the owner has read all slabs before tl::fragment_stored). Called by: whole consumer warps.
  TL_DEVICE void consumer_release(int k) const {
    sync_warp();  // all lanes have read the stage
    if (lane() == 0) mbarrier_arrive(barriers_.empty[k % stages][warp() / warpgroup_warps]);
  }

 private:
  TmaSlabBarriers<stages, slabs>& barriers_;
};

// As tl::tma_load, of one slab of the tile that begins at these coordinates: announces its bytes at `full`
// (arrive.expect_tx), on which the load completes. Called by: the producer's one thread.
template <int rank, class Tile>
TL_DEVICE void tma_load_slab(const TensorMap& map, At<rank> from, Tile& to, int slab, Barrier& full) {
  constexpr int elements = Tile::rows * Tile::slab_cols;
  from.coordinate[rank - 1] = wrapping_add(from.coordinate[rank - 1], slab * Tile::slab_cols);
  mbarrier_arrive_expect(full, elements * int(sizeof(typename Tile::type)));
  tma_load_box(to.data + slab * elements, map, from.coordinate, full);
}

// What a thread of the producer's warpgroup gathers of a tile: in each slab one chunk of 16 bytes of `count` rows,
// which are the same in all slabs.
template <class View, class Tile> struct GatheredRows {
  static constexpr int chunks = Tile::slab_cols / Tile::chunk_cols, step = producer_warpgroup / chunks;
  static constexpr int count = Tile::rows / step;
  static_assert(std::is_same<typename View::T, typename Tile::type>::value, "an asynchronous copy does not convert");
  static_assert(View::alignment == 16 && Tile::chunk_bytes == 16, "rows consist of chunks of 16 bytes");
  static_assert(Tile::rows % step == 0, "all threads have as many rows");

  View from;
  const typename View::T* chunk[count];  // in slab 0
  bool copied[count];                    // or filled with zeros
  int first_col;                         // of the tensor, in which all copied rows begin

  static TL_DEVICE int row(int i) { return int(thread() % producer_warpgroup) / chunks + i * step; }
  static TL_DEVICE int col() { return int(thread()) % chunks * Tile::chunk_cols; }
};
// Finds the rows: row i of a tile like `to` is read from the coordinate `place(i)` (a tl::at) of `from`, or is zero
// where wanted(i) is false; then place(i) is not evaluated. Rows begin at multiples of 16 bytes, in the same column,
// which may be outside of the tensor: elements outside are zero. Called by: all threads of the producer's warpgroup.
template <class View, class Tile, class PlaceOf, class Wanted = EveryRow>
TL_DEVICE auto gathered_rows(const View& from, const Tile&, const PlaceOf& place, const Wanted& wanted = {}) {
  using Rows = GatheredRows<View, Tile>;
  Rows rows{from};
  TL_UNROLL
  for (int i = 0; i < Rows::count; ++i) {
    bool copied = wanted(Rows::row(i));
    const At<View::rank> at = copied ? place(Rows::row(i)) : At<View::rank>{};
    TL_UNROLL
    for (int d = 0; d < View::last; ++d) copied = copied && from.inside(d, at.coordinate[d]);
    if (copied) rows.first_col = at.coordinate[View::last];
    rows.copied[i] = copied;
    rows.chunk[i] = copied ? from.address(at.coordinate) + Rows::col() : from.data;
  }
  return rows;
}
// Issues the copies of a thread to one slab of `to` (cp.async), and an arrival at `full` when they are complete.
// Readers by the async proxy fence behind the wait for it. Called by: as above.
template <class View, class Tile>
TL_DEVICE void gather_slab(const GatheredRows<View, Tile>& rows, Tile& to, int slab, Barrier& full) {
  using Rows = GatheredRows<View, Tile>;
  const int col = slab * Tile::slab_cols + Rows::col();
  const int bytes = bytes_inside<View, Tile::chunk_cols>(rows.from, wrapping_add(rows.first_col, col));
  TL_UNROLL
  for (int i = 0; i < Rows::count; ++i)
    cp_async<16>(to.at(Rows::row(i), col), rows.chunk[i] + slab * Tile::slab_cols, rows.copied[i] ? bytes : 0);
  cp_async_arrive(full);
}

// As tl::gemm_start, of the part of K that is this slab of b's tile, in one wgmma group: K runs along b's rows. C = A B
// of the slab where `overwrite` holds.
template <class A, class Tile, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start_slab(const A& a, const Transposed<Tile>& b,
                               Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C, int slab,
                               OverwriteIf overwrite = {false}) {
  using Layout = WgmmaAccumulator<M, N, along_m, along_n>;
  static_assert(Layout::own_cols <= wgmma_most_columns, "one instruction covers all columns");
  const auto from_a = wgmma_a(a, C);
  const auto from_b = wgmma_b(b, C);
  const int first = slab * Tile::slab_cols;
  pin_registers<Layout::registers>(C.reg);
  wgmma_fence();
  TL_UNROLL
  for (int m = 0; m < Layout::m_tiles; ++m) TL_UNROLL
  for (int k = first; k < first + Tile::slab_cols; k += wgmma_k<typename Tile::type>)
    from_a.template multiply<Layout::own_cols>(C.reg + m * Layout::tile_registers, m, k, from_b, 0,
                                               !overwrite.holds || k > first);
  wgmma_commit();
}

}  // namespace tl
