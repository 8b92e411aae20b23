// A ring of shared-memory slots that one warp fills by TMA while the others use them.
#pragma once
#include "../../sm90_primitives.h"
#include "../base.h"

namespace tl {

// Who loads: one warp beyond the threads that the kernel was written for.
constexpr int producer_threads = warp_size;
// The shuffle tells the compiler that whole warps take the same way, so that it keeps loop counters and addresses of
// what follows in uniform registers. Who: whole warps.
template <int threads> TL_DEVICE bool is_producer() { return shuffle(warp(), 0) >= threads / warp_size; }

// A barrier among the first `threads` threads, without the producer. It also makes what they wrote to shared memory by
// ordinary stores visible to wgmma and TMA. Who: each of those threads.
template <int threads> TL_DEVICE void sync_consumers() {
  fence_async_proxy();
  barrier_sync(1, threads);
}

// What these tiles hold, in bytes.
template <class... Tiles> TL_DEVICE constexpr int bytes(const Tiles&...) { return (int(sizeof(Tiles)) + ...); }

template <int stages> struct TmaBarriers {
  Barrier full[stages];   // a phase ends when TMA has filled the slot
  Barrier empty[stages];  // a phase ends when all consumer warps have released the slot
};

// Tile k lies in slot k % stages. `threads` threads use the tiles, the one behind them loads.
template <int stages, int threads> class TmaPipeline {
 public:
  static_assert(threads % warp_size == 0, "whole warps use the tiles");

  // `bytes`: of all tiles of a slot. Who: every thread of the block, the producer too.
  TL_DEVICE TmaPipeline(TmaBarriers<stages>& barriers, int bytes) : barriers_(barriers), bytes_(bytes) {
    if (thread() == 0) {
      TL_UNROLL
      for (int slot = 0; slot < stages; ++slot) {
        mbarrier_init(barriers.full[slot], 1);
        mbarrier_init(barriers.empty[slot], threads / warp_size);
      }
      mbarrier_init_fence();
    }
    sync_threads();
  }

  // load(k, full) for k = 0 .. turns - 1, each as soon as its slot is free; it starts the loads of tile k, which arrive
  // at `full`. Who: the producer's threads, of which one does it.
  template <class Load> TL_DEVICE void produce(int turns, const Load& load) const {
    if (thread() != threads) return;
    TL_NO_UNROLL
    for (int k = 0; k < turns; ++k) {
      const int slot = k % stages;
      mbarrier_wait(barriers_.empty[slot], (k / stages & 1) ^ 1);
      mbarrier_arrive_expect(barriers_.full[slot], bytes_);
      load(k, barriers_.full[slot]);
    }
  }

  struct Iterator {
    int k;
    const TmaPipeline& pipeline;
    TL_DEVICE bool operator!=(const Iterator& end) const { return k != end.k; }
    TL_DEVICE int operator*() const { return pipeline.wait(k), k; }
    TL_DEVICE void operator++() { pipeline.release(k++); }
  };
  struct Turns {
    int count;
    const TmaPipeline& pipeline;
    TL_DEVICE Iterator begin() const { return {0, pipeline}; }
    TL_DEVICE Iterator end() const { return {count > 0 ? count : 0, pipeline}; }
  };
  // for (int k : pipeline.consume(turns)): in turn k tile k is there; at its end the slot is free for this warp. Who:
  // the first `threads` threads. No turns are legal; there is no break.
  TL_DEVICE Turns consume(int turns) const { return {turns, *this}; }

 private:
  TL_DEVICE void wait(int k) const { mbarrier_wait(barriers_.full[k % stages], k / stages & 1); }
  TL_DEVICE void release(int k) const {
    sync_warp();  // all lanes are done with the slot
    if (lane() == 0) mbarrier_arrive(barriers_.empty[k % stages]);
  }

  TmaBarriers<stages>& barriers_;
  int bytes_;
};

}  // namespace tl
