// A pipeline whose tiles are loaded in slabs of columns: an MMA starts when the first slab has arrived.
#pragma once
#include "tma_copy.h"
#include "tma_pipeline.h"
#include "wgmma_gemm.h"

namespace tl {

template <int stages, int slabs> struct TmaSlabBarriers {
  Barrier full[stages][slabs];  // a phase completes when TMA has filled the slab
  Barrier empty[stages][2];     // a phase completes when a warpgroup has released its part
};

// The slabs of one stage in load order, for consumers. Each thread has its own instance.
class TmaArrivals {
 public:
  TL_DEVICE TmaArrivals(Barrier* full, int parity) : next_(full), parity_(parity) {}
  // Waits until the next slab has arrived. Called by: any thread.
  TL_DEVICE void wait() { mbarrier_wait(*next_++, parity_); }

 private:
  Barrier* next_;
  int parity_;
};

// The same for the producer; the first `first_part` slabs are warpgroup 0's. Called by: the producer's one thread.
class TmaSlabLoads {
 public:
  TL_DEVICE TmaSlabLoads(Barrier* full, Barrier* empty, int first_part, int parity)
      : full_(full), empty_(empty), first_part_(first_part), parity_(parity) {}
  // Waits until the stage's part that begins with the next slab is empty. Returns the slab's barrier, which expects
  // `bytes`.
  TL_DEVICE Barrier& expect(int bytes) {
    if (slab_ == 0 || slab_ == first_part_) mbarrier_wait(empty_[slab_ == 0 ? 0 : 1], parity_ ^ 1);
    Barrier& full = full_[slab_++];
    mbarrier_arrive_expect(full, bytes);
    return full;
  }

 private:
  Barrier *full_, *empty_;
  int slab_ = 0, first_part_, parity_;
};

// As TmaPipeline, for tiles of `slabs` slabs. Two warpgroups each release a part: the first `first_part` slabs, and the
// others. Tile k is in stage k % stages.
template <int stages, int slabs, int first_part, int threads> class TmaSlabPipeline {
 public:
  static_assert(threads == 2 * warpgroup_warps * warp_size, "two warpgroups use the tiles");
  static_assert(0 < first_part && first_part < slabs, "each warpgroup has a part");

  TL_DEVICE explicit TmaSlabPipeline(TmaSlabBarriers<stages, slabs>& barriers) : barriers_(barriers) {}
  // Initialises the barriers; mbarrier_init_fence and a block barrier must follow. Called by: one thread.
  TL_DEVICE void init() const {
    TL_UNROLL
    for (int stage = 0; stage < stages; ++stage) {
      TL_UNROLL
      for (int slab = 0; slab < slabs; ++slab) mbarrier_init(barriers_.full[stage][slab], 1);
      for (Barrier& empty : barriers_.empty[stage]) mbarrier_init(empty, warpgroup_warps);
    }
  }

  // The barriers on which the slabs of tile k complete, in order; each is available when its part of the stage is
  // empty.
  // Called by: the producer's one thread.
  TL_DEVICE TmaSlabLoads producer_acquire(int k) const {
    return {barriers_.full[k % stages], barriers_.empty[k % stages], first_part, k / stages & 1};
  }
  // The slabs of tile k, for consumers. Any thread.
  TL_DEVICE TmaArrivals arrivals(int k) const { return {barriers_.full[k % stages], k / stages & 1}; }
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

// As tl::tma_load, with one barrier per slab.
template <int rank, class Tile>
TL_DEVICE void tma_load(const TensorMap& map, At<rank> from, Tile& to, TmaSlabLoads& loads) {
  constexpr int elements = Tile::rows * Tile::slab_cols;
  TL_UNROLL
  for (int slab = 0; slab < Tile::cols / Tile::slab_cols; ++slab) {
    tma_load_box(to.data + slab * elements, map, from.coordinate,
                 loads.expect(elements * int(sizeof(typename Tile::type))));
    from.coordinate[rank - 1] += Tile::slab_cols;
  }
}

// As tl::gemm_start, in one wgmma group per slab of b's tile, each after the slab has arrived. K runs along b's rows.
template <class A, class Tile, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start_arriving(const A& a, const Transposed<Tile>& b,
                                   Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C, bool accumulate,
                                   TmaArrivals& arrivals) {
  using Layout = WgmmaAccumulator<M, N, along_m, along_n>;
  static_assert(Layout::own_cols <= wgmma_most_columns, "one instruction covers all columns");
  const auto from_a = wgmma_a(a, C);
  const auto from_b = wgmma_b(b, C);
  TL_UNROLL
  for (int first = 0; first < Tile::cols; first += Tile::slab_cols) {
    arrivals.wait();
    pin_registers<Layout::registers>(C.reg);
    wgmma_fence();
    TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) TL_UNROLL
    for (int k = first; k < first + Tile::slab_cols; k += wgmma_k<typename Tile::type>)
      from_a.template multiply<Layout::own_cols>(C.reg + m * Layout::tile_registers, m, k, from_b, 0,
                                                 accumulate || k > 0);
    wgmma_commit();
  }
}
template <class A, class Tile, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start(const A& a, const Transposed<Tile>& b,
                          Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C, TmaArrivals& arrivals) {
  gemm_start_arriving(a, b, C, true, arrivals);
}
template <class A, class Tile, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start(const A& a, const Transposed<Tile>& b,
                          Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C, Overwrite,
                          TmaArrivals& arrivals) {
  gemm_start_arriving(a, b, C, false, arrivals);
}

}  // namespace tl
