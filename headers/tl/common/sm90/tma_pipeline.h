// A pipeline of shared-memory stages that one producer thread fills by TMA while consumer warps use them.
#pragma once
#include "../../sm90_primitives.h"
#include "../base.h"

namespace tl {

// The producer: one warp in addition to the threads of the source program, or a warpgroup that releases registers.
constexpr int producer_threads = warp_size, producer_warpgroup = 4 * warp_size;
// Whether this warp is a producer. The shuffle makes the result warp-uniform for the compiler, which keeps the loop
// counters and addresses that follow in uniform registers. Called by: whole warps.
template <int threads> TL_DEVICE bool is_producer() { return shuffle(warp(), 0) >= threads / warp_size; }

// A barrier of the consumers, the first `threads` threads. Their generic-proxy writes to shared memory are then visible
// to wgmma and TMA. Called by: each of those threads.
template <int threads> TL_DEVICE void sync_consumers() {
  fence_async_proxy();
  barrier_sync(1, threads);
}

// A barrier of the consumers that only orders their reads before later writes (WAR), or their writes before reads of
// threads alone. It lacks the proxy fence, which waits for each thread's own loads and stores. Called by: the first
// `threads` threads.
template <int threads> TL_DEVICE void sync_readers() { barrier_sync(1, threads); }

// The size of these tiles in bytes.
template <class... Tiles> TL_DEVICE constexpr int bytes(const Tiles&...) { return (int(sizeof(Tiles)) + ...); }

template <int stages> struct TmaBarriers {
  Barrier full[stages];   // a phase ends when TMA has filled the stage
  Barrier empty[stages];  // a phase ends when all consumer warps have released the stage
};

// A stage index and its phase parity. Producer and consumers advance their own states in the same order.
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

// A pipeline of shared-memory stages: tile k is in stage k % stages. `threads` consumer threads are followed by the
// producer. `blocks` > 1: in a cluster, any block may load for the others; a stage is empty when the consumers of all
// blocks have released it.
template <int stages, int threads, int blocks = 1> class TmaPipeline {
 public:
  static_assert(threads % warp_size == 0, "whole warps use the tiles");

  // `bytes`: the size of all tiles of a stage.
  TL_DEVICE TmaPipeline(TmaBarriers<stages>& barriers, int bytes) : barriers_(barriers), bytes_(bytes) {}
  // Initialises the barriers; mbarrier_init_fence and a block barrier must follow. Called by: one thread.
  TL_DEVICE void init() const {
    TL_UNROLL
    for (int stage = 0; stage < stages; ++stage) {
      mbarrier_init(barriers_.full[stage], 1);
      mbarrier_init(barriers_.empty[stage], threads / warp_size * blocks);
    }
  }

  // Waits until every consumer warp has released the stage of tile k, and adds the expected bytes to the barrier, on
  // which the loads then complete. Called by: the producer's one thread.
  TL_DEVICE Barrier& producer_acquire(int k) const { return acquire(k % stages, k / stages & 1); }
  TL_DEVICE Barrier& producer_acquire(const PipelineState<stages>& stage) const {
    return acquire(stage, stage.phase());
  }
  // Waits until every consumer warp, of all blocks, has released the last of `tiles` tiles: a block must not exit
  // before the arrivals of others. Called by: the same thread.
  TL_DEVICE void producer_tail(int tiles) const {
    for (int k = tiles < stages ? 0 : tiles - stages; k < tiles; ++k)
      mbarrier_wait(barriers_.empty[k % stages], k / stages & 1);
  }
  // Waits until tile k has arrived. Called by: each consumer thread.
  TL_DEVICE void consumer_wait(int k) const { mbarrier_wait(barriers_.full[k % stages], k / stages & 1); }
  TL_DEVICE void consumer_wait(const PipelineState<stages>& stage) const {
    mbarrier_wait(barriers_.full[stage], stage.phase());
  }
  // Releases the stage of tile k for this warp: it may be loaded again when all warps have released it. Called by:
  // whole consumer warps.
  TL_DEVICE void consumer_release(int k) const { release(k % stages); }
  TL_DEVICE void consumer_release(const PipelineState<stages>& stage) const { release(stage); }
  // As consumer_release, of a stage that this warp has loaded from (ld.shared, ldmatrix), rather than wgmma: waits
  // until the loads have completed. An arrival does not wait for them: TMA would overwrite what they have yet to read.
  TL_DEVICE void consumer_release_after_loads(int k) const { fence_async_proxy(), release(k % stages); }
  TL_DEVICE void consumer_release_after_loads(const PipelineState<stages>& stage) const {
    fence_async_proxy(), release(stage);
  }
  // Releases tile k without using it. Waits for it first: an earlier arrival would count for the phase of the tile that
  // was in the stage before. Called by: whole consumer warps.
  TL_DEVICE void consumer_skip(int k) const { consumer_wait(k), consumer_release(k); }
  // As consumer_release, by an arrival that depends on `known`, so that the compiler does not move a wait for MMAs
  // above it. `known` is warp-uniform. Called by: whole consumer warps.
  TL_DEVICE void consumer_release_after(bool known, int k) const {
    static_assert(blocks == 1, "clusters use consumer_release");
    sync_warp();  // all lanes have read the stage
    if (lane() == (known ? 1 : 0)) mbarrier_arrive(barriers_.empty[k % stages]);
  }

 protected:
  // The steps of producer_acquire: wait until the stage is empty, and expect its bytes; or an arrival for a stage
  // without loads. Called by: the producer's one thread.
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

// Calls visit(k) for the k in start .. stop - 1 for which taken(k) is true, in order. Each lane of a warp evaluates
// taken for another k, so that the loads of the condition overlap. Called by: whole warps, with warp-uniform arguments.
template <class Taken, class Visit>
TL_DEVICE void for_each_active(int start, int stop, const Taken& taken, const Visit& visit) {
  for (int first = start; first < stop; first = saturating_add(first, warp_size)) {
    const int own = saturating_add(first, lane());
    auto bits = static_cast<uint32_t>(ballot(own < stop && taken(own)));
    for (; bits != 0; bits &= bits - 1) visit(first + first_set(bits) - 1);
  }
}

}  // namespace tl
