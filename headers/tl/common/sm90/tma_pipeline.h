// A pipeline of shared-memory stages that one thread fills by TMA while the other warps use them.
#pragma once
#include "../../sm90_primitives.h"
#include "../base.h"

namespace tl {

// Who loads: one warp beyond the threads that the kernel was written for, or a warpgroup that hands over registers.
constexpr int producer_threads = warp_size, producer_warpgroup = 4 * warp_size;
// The shuffle tells the compiler that whole warps take the same way, so that it keeps loop counters and addresses of
// what follows in uniform registers. Called by: whole warps.
template <int threads> TL_DEVICE bool is_producer() { return shuffle(warp(), 0) >= threads / warp_size; }

// A barrier among the first `threads` threads, without the producer. It also makes what they wrote to shared memory by
// ordinary stores visible to wgmma and TMA. Called by: each of those threads.
template <int threads> TL_DEVICE void sync_consumers() {
  fence_async_proxy();
  barrier_sync(1, threads);
}

// A barrier among them that only ends their reads: what was read may be overwritten, nothing is made visible. The fence
// that this one lacks waits for each thread's own loads and stores. Called by: the first `threads` threads.
template <int threads> TL_DEVICE void sync_readers() { barrier_sync(1, threads); }

// What these tiles hold, in bytes.
template <class... Tiles> TL_DEVICE constexpr int bytes(const Tiles&...) { return (int(sizeof(Tiles)) + ...); }

template <int stages> struct TmaBarriers {
  Barrier full[stages];   // a phase ends when TMA has filled the stage
  Barrier empty[stages];  // a phase ends when all consumer warps have released the stage
};

// A stage of a pipeline and the parity of its phase. Producer and consumers have one each, and advance them alike.
template <int stages> class PipelineState {
 public:
  TL_DEVICE operator int() const { return index_; }
  TL_DEVICE int phase() const { return phase_; }
  TL_DEVICE void advance() {
    index_ = index_ + 1 == stages ? 0 : index_ + 1;
    phase_ ^= index_ == 0;
  }

 private:
  int index_ = 0, phase_ = 0;
};

// A pipeline of shared-memory stages: tile k resides in stage k % stages. `threads` consumer threads use the tiles, the
// producer behind them loads. With several blocks, those of a cluster, any may load for the others: a stage is empty
// when the consumers of all have released it.
template <int stages, int threads, int blocks = 1> class TmaPipeline {
 public:
  static_assert(threads % warp_size == 0, "whole warps use the tiles");

  // `bytes`: of all tiles of a stage.
  TL_DEVICE TmaPipeline(TmaBarriers<stages>& barriers, int bytes) : barriers_(barriers), bytes_(bytes) {}
  // Initialises the barriers; then come mbarrier_init_fence and a barrier of the block. Called by: one thread.
  TL_DEVICE void init() const {
    TL_UNROLL
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(barriers_.full[stage], 1);
      mbarrier_init(barriers_.empty[stage], threads / warp_size * blocks);
    }
  }

  // Waits until every consumer warp has released the stage of tile k. The barrier then expects the bytes of the loads,
  // which arrive at it. Called by: the producer's one thread.
  TL_DEVICE Barrier& producer_acquire(int k) const { return acquire(k % stages, k / stages & 1); }
  TL_DEVICE Barrier& producer_acquire(const PipelineState<stages>& stage) const {
    return acquire(stage, stage.phase());
  }
  // Waits until every consumer warp, of all blocks, has released the last of `tiles` tiles: a block must not end before
  // arrivals of others. Called by: the same thread.
  TL_DEVICE void producer_tail(int tiles) const {
    for (int k = tiles < stages ? 0 : tiles - stages; k < tiles; ++k)
      mbarrier_wait(barriers_.empty[k % stages], k / stages & 1);
  }
  // Waits until tile k has arrived. Called by: each consumer thread.
  TL_DEVICE void consumer_wait(int k) const { mbarrier_wait(barriers_.full[k % stages], k / stages & 1); }
  TL_DEVICE void consumer_wait(const PipelineState<stages>& stage) const {
    mbarrier_wait(barriers_.full[stage], stage.phase());
  }
  // This warp has read tile k: its stage may be loaded again when all warps have. Called by: whole consumer warps.
  TL_DEVICE void consumer_release(int k) const { release(k % stages); }
  TL_DEVICE void consumer_release(const PipelineState<stages>& stage) const { release(stage); }
  // This warp does not use tile k. It waits for it all the same: an earlier arrival would count as one that releases
  // the tile that was in the stage before. Called by: whole consumer warps.
  TL_DEVICE void consumer_skip(int k) const { consumer_wait(k), consumer_release(k); }
  // As consumer_release, by an arrival that depends on `known`: compilers move no wait for MMAs up in front of it.
  // Called by: whole consumer warps, all lanes of which have the same value.
  TL_DEVICE void consumer_release_after(bool known, int k) const {
    static_assert(blocks == 1, "the stages of a cluster are released by consumer_release");
    sync_warp();  // all lanes have read the stage
    if (lane() == (known ? 1 : 0)) mbarrier_arrive(barriers_.empty[k % stages]);
  }

 protected:
  // Waits until the stage of tile k is empty; the barrier that then expects the bytes of the loads; the arrival at a
  // stage without loads. Called by: the producer's one thread.
  TL_DEVICE void wait_until_empty(int k) const { mbarrier_wait(barriers_.empty[k % stages], (k / stages & 1) ^ 1); }
  TL_DEVICE Barrier& expect(int k) const {
    mbarrier_arrive_expect(barriers_.full[k % stages], bytes_);
    return barriers_.full[k % stages];
  }
  TL_DEVICE void fill_without_tile(int k) const { mbarrier_arrive(barriers_.full[k % stages]); }

 private:
  TL_DEVICE Barrier& acquire(int stage, int phase) const {
    mbarrier_wait(barriers_.empty[stage], phase ^ 1);
    mbarrier_arrive_expect(barriers_.full[stage], bytes_);
    return barriers_.full[stage];
  }
  TL_DEVICE void release(int stage) const {
    sync_warp();  // all lanes have read the stage
    if constexpr (blocks > 1) {
      if (lane() < blocks) mbarrier_arrive_as_reader(barriers_.empty[stage], lane());
    } else {
      if (lane() == 0) mbarrier_arrive(barriers_.empty[stage]);
    }
  }

  TmaBarriers<stages>& barriers_;
  int bytes_;
};

// visit(k) for those of start .. stop - 1 for which taken(k) holds, in order. The lanes of a warp ask for as many turns
// at once, so that what decides arrives together. Called by: whole warps, all of whose threads know the same.
template <class Taken, class Visit>
TL_DEVICE void for_each_active(int start, int stop, const Taken& taken, const Visit& visit) {
  for (int first = start; first < stop; first += warp_size) {
    const int own = first + lane();
    auto bits = static_cast<uint32_t>(ballot(own < stop && taken(own)));
    for (; bits != 0; bits &= bits - 1) visit(first + first_set(bits) - 1);
  }
}

}  // namespace tl
