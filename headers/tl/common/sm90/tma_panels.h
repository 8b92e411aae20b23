// A ring whose tiles arrive panel by panel, so that a product starts when the first of them are there.
#pragma once
#include "tma_copy.h"
#include "tma_pipeline.h"
#include "wgmma_gemm.h"

namespace tl {

template <int stages, int panels> struct TmaPanelBarriers {
  Barrier full[stages][panels];  // a phase ends when TMA has filled the panel
  Barrier empty[stages];         // a phase ends when all consumer warps have released the slot
};

// The panels of one slot, in the order in which they are loaded. Any thread has its own.
class TmaArrivals {
 public:
  TL_DEVICE TmaArrivals(Barrier* full, int parity) : next_(full), parity_(parity) {}
  // The barrier of the next panel, which then expects its bytes. Who: the producer's one thread.
  TL_DEVICE Barrier& expect(int bytes) {
    mbarrier_arrive_expect(*next_, bytes);
    return *next_++;
  }
  // Waits until the next panel is there. Who: any thread.
  TL_DEVICE void wait() { mbarrier_wait(*next_++, parity_); }

 private:
  Barrier* next_;
  int parity_;
};

// As TmaPipeline, for tiles of `panels` panels in all. Tile k lies in slot k % stages.
template <int stages, int panels, int threads> class TmaPanelPipeline {
 public:
  static_assert(threads % warp_size == 0, "whole warps use the tiles");

  // Who: every thread of the block, the producer too.
  TL_DEVICE explicit TmaPanelPipeline(TmaPanelBarriers<stages, panels>& barriers) : barriers_(barriers) {
    if (thread() == 0) {
      TL_UNROLL
      for (int slot = 0; slot < stages; ++slot) {
        TL_UNROLL
        for (int panel = 0; panel < panels; ++panel) mbarrier_init(barriers.full[slot][panel], 1);
        mbarrier_init(barriers.empty[slot], threads / warp_size);
      }
      mbarrier_init_fence();
    }
    sync_threads();
  }

  // load(k, full) for k = 0 .. turns - 1, each as soon as its slot is free; it starts the loads of tile k, whose panels
  // arrive at `full` one by one. Who: the producer's threads, of which one does it.
  template <class Load> TL_DEVICE void produce(int turns, const Load& load) const {
    tl::produce<threads>(turns, [&](int k) {
      mbarrier_wait(barriers_.empty[k % stages], (k / stages & 1) ^ 1);
      load(k, arrivals(k));
    });
  }
  // The panels of tile k. Any thread.
  TL_DEVICE TmaArrivals arrivals(int k) const { return {barriers_.full[k % stages], k / stages & 1}; }
  // This warp is done with tile k: its slot may be loaded again when all warps are. Who: whole consumer warps.
  TL_DEVICE void release(int k) const {
    sync_warp();  // all lanes are done with the slot
    if (lane() == 0) mbarrier_arrive(barriers_.empty[k % stages]);
  }

 private:
  TmaPanelBarriers<stages, panels>& barriers_;
};

// As tl::tma_load of a tile that arrives at one barrier; here each panel arrives at its own.
template <int rank, class Tile>
TL_DEVICE void tma_load(const TensorMap& map, At<rank> from, Tile& to, TmaArrivals& arrivals) {
  constexpr int elements = Tile::rows * Tile::panel_cols;
  TL_UNROLL
  for (int panel = 0; panel < Tile::cols / Tile::panel_cols; ++panel) {
    tma_load_box(to.data + panel * elements, map, from.coordinate,
                 arrivals.expect(elements * int(sizeof(typename Tile::type))));
    from.coordinate[rank - 1] += Tile::panel_cols;
  }
}

// As tl::gemm_start, panel after panel of b's tile as they arrive, each a group of instructions. K runs along b's rows.
template <class A, class Tile, class Sum, int M, int N, int along_m, int along_n>
TL_DEVICE void gemm_start_arriving(const A& a, const Transposed<Tile>& b,
                                   Fragment<Sum, WgmmaAccumulator<M, N, along_m, along_n>>& C, bool accumulate,
                                   TmaArrivals& arrivals) {
  using Layout = WgmmaAccumulator<M, N, along_m, along_n>;
  static_assert(Layout::own_cols <= wgmma_most_columns, "one instruction takes all columns");
  const auto from_a = wgmma_a(a, C);
  const auto from_b = wgmma_b(b, C);
  TL_UNROLL
  for (int first = 0; first < Tile::cols; first += Tile::panel_cols) {
    arrivals.wait();
    pin_registers<Layout::registers>(C.reg);
    wgmma_fence();
    TL_UNROLL
    for (int m = 0; m < Layout::m_tiles; ++m) TL_UNROLL
    for (int k = first; k < first + Tile::panel_cols; k += wgmma_k<typename Tile::type>)
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
