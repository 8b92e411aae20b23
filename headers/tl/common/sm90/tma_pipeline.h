// A ring of shared-memory slots that one warp fills by TMA while the others use them.
#pragma once
#include "../../sm90_primitives.h"
#include "../base.h"

namespace tl {

// Who loads: one warp beyond the threads that the kernel was written for, or a warpgroup that hands over registers.
constexpr int producer_threads = warp_size, producer_warpgroup = 4 * warp_size;
// The shuffle tells the compiler that whole warps take the same way, so that it keeps loop counters and addresses of
// what follows in uniform registers. Who: whole warps.
template <int threads> TL_DEVICE bool is_producer() { return shuffle(warp(), 0) >= threads / warp_size; }

// A barrier among the first `threads` threads, without the producer. It also makes what they wrote to shared memory by
// ordinary stores visible to wgmma and TMA. Who: each of those threads.
template <int threads> TL_DEVICE void sync_consumers() {
  fence_async_proxy();
  barrier_sync(1, threads);
}

// A barrier among them that only ends their reads: what was read may be overwritten, nothing is made visible. The fence
// that this one lacks waits for each thread's own loads and stores. Who: the first `threads` threads.
template <int threads> TL_DEVICE void sync_readers() { barrier_sync(1, threads); }

// What these tiles hold, in bytes.
template <class... Tiles> TL_DEVICE constexpr int bytes(const Tiles&...) { return (int(sizeof(Tiles)) + ...); }

template <int stages> struct TmaBarriers {
  Barrier full[stages];   // a phase ends when TMA has filled the slot
  Barrier empty[stages];  // a phase ends when all consumer warps have released the slot
};

// A slot of a ring, and which round of the ring this is. Who loads and who computes have one each, and come to the same
// slots in the same order.
template <int stages> class RingSlot {
 public:
  TL_DEVICE operator int() const { return slot_; }
  TL_DEVICE int parity() const { return parity_; }
  TL_DEVICE void advance() {
    slot_ = slot_ + 1 == stages ? 0 : slot_ + 1;
    parity_ ^= slot_ == 0;
  }

 private:
  int slot_ = 0, parity_ = 0;
};

// One ring of slots: tile k lies in slot k % stages. `threads` threads use the tiles, the producer behind them loads.
// With several blocks, those of a cluster, any may load for the others: a slot is free when all have released it.
template <int stages, int threads, int blocks = 1> class TmaRing {
 public:
  static_assert(threads % warp_size == 0, "whole warps use the tiles");

  // `bytes`: of all tiles of a slot. Who: every thread of the block, the producer too.
  TL_DEVICE TmaRing(TmaBarriers<stages>& barriers, int bytes) : barriers_(barriers), bytes_(bytes) {
    if (thread() == 0) {
      TL_UNROLL
      for (int slot = 0; slot < stages; ++slot) {
        mbarrier_init(barriers.full[slot], 1);
        mbarrier_init(barriers.empty[slot], threads / warp_size * blocks);
      }
      mbarrier_init_fence();
    }
    if constexpr (blocks > 1)
      show_barriers_to_cluster();
    else
      sync_threads();
  }

  // Waits until every consumer warp has released the slot of tile k; the barrier then expects the bytes of the loads,
  // which arrive at it. Who: the producer's one thread.
  TL_DEVICE Barrier& acquire(int k) const { return acquire(k % stages, k / stages & 1); }
  TL_DEVICE Barrier& acquire(const RingSlot<stages>& slot) const { return acquire(slot, slot.parity()); }
  // Waits until tile k is there. Who: each consumer thread.
  TL_DEVICE void wait(int k) const { mbarrier_wait(barriers_.full[k % stages], k / stages & 1); }
  TL_DEVICE void wait(const RingSlot<stages>& slot) const { mbarrier_wait(barriers_.full[slot], slot.parity()); }
  // Waits until every consumer warp, of all blocks, has released the slots of the last of `turns` tiles: a block must
  // not end before arrivals of others. Who: the producer's threads, of which one does it.
  TL_DEVICE void drain(int turns) const {
    if (thread() != threads) return;
    for (int k = turns < stages ? 0 : turns - stages; k < turns; ++k)
      mbarrier_wait(barriers_.empty[k % stages], k / stages & 1);
  }
  // This warp is done with tile k: its slot may be loaded again when all warps are. Who: whole consumer warps.
  TL_DEVICE void release(int k) const { release_slot(k % stages); }
  TL_DEVICE void release(const RingSlot<stages>& slot) const { release_slot(slot); }
  // This warp does not use tile k. It waits for it all the same: an earlier arrival would count as one that releases
  // the tile that was in the slot before. Who: whole consumer warps.
  TL_DEVICE void skip(int k) const { wait(k), release(k); }
  // The same as release, by an arrival that depends on what the warp knows by now: compilers move no wait for products
  // up in front of it. Who: whole consumer warps, all lanes of which know the same.
  TL_DEVICE void release_knowing(bool known, int k) const {
    static_assert(blocks == 1, "the slots of a cluster are freed by release");
    sync_warp();  // all lanes are done with the slot
    if (lane() == (known ? 1 : 0)) mbarrier_arrive(barriers_.empty[k % stages]);
  }

 protected:
  // Waits until slot k is free; the barrier that then expects the bytes of the loads; the same of a slot without loads.
  // Who: the producer's one thread.
  TL_DEVICE void wait_until_free(int k) const { mbarrier_wait(barriers_.empty[k % stages], (k / stages & 1) ^ 1); }
  TL_DEVICE Barrier& expect(int k) const {
    mbarrier_arrive_expect(barriers_.full[k % stages], bytes_);
    return barriers_.full[k % stages];
  }
  TL_DEVICE void show(int k) const { mbarrier_arrive(barriers_.full[k % stages]); }

 private:
  TL_DEVICE Barrier& acquire(int slot, int parity) const {
    mbarrier_wait(barriers_.empty[slot], parity ^ 1);
    mbarrier_arrive_expect(barriers_.full[slot], bytes_);
    return barriers_.full[slot];
  }
  TL_DEVICE void release_slot(int slot) const {
    sync_warp();  // all lanes are done with the slot
    if constexpr (blocks > 1) {
      if (lane() < blocks) mbarrier_arrive_as_reader(barriers_.empty[slot], lane());
    } else {
      if (lane() == 0) mbarrier_arrive(barriers_.empty[slot]);
    }
  }

  TmaBarriers<stages>& barriers_;
  int bytes_;
};

// visit(k) for those of start .. stop - 1 for which taken(k) holds, in order. The lanes of a warp ask for as many turns
// at once, so that what decides arrives together. Who: whole warps, all of whose threads know the same.
template <class Taken, class Visit>
TL_DEVICE void each_taken(int start, int stop, const Taken& taken, const Visit& visit) {
  for (int first = start; first < stop; first += warp_size) {
    const int own = first + lane();
    auto bits = static_cast<uint32_t>(ballot(own < stop && taken(own)));
    for (; bits != 0; bits &= bits - 1) visit(first + first_set(bits) - 1);
  }
}

// load(k) for k = 0 .. turns - 1, by one thread; it acquires the slots that it fills. Who: the producer's threads.
template <int threads, class Load> TL_DEVICE void produce(int turns, const Load& load) {
  if (thread() != threads) return;
  TL_NO_UNROLL
  for (int k = 0; k < turns; ++k) load(k);
}

// Tiles that TMA fills once, before the turns. Made before the ring, whose constructor shows the barrier to the block.
template <int threads> class FirstTiles {
 public:
  // `bytes`: of all of them. Who: every thread of the block, the producer too.
  TL_DEVICE FirstTiles(Barrier& full, int bytes) : full_(full), bytes_(bytes) {
    if (thread() == 0) mbarrier_init(full, 1);
  }
  // load(full) starts the loads, which arrive at `full`. Who: the producer's threads, of which one does it.
  template <class Load> TL_DEVICE void produce(const Load& load) const {
    if (thread() != threads) return;
    mbarrier_arrive_expect(full_, bytes_);
    load(full_);
  }
  // Waits until they are there. Who: each consumer thread.
  TL_DEVICE void wait() const { mbarrier_wait(full_, 0); }

 private:
  Barrier& full_;
  int bytes_;
};

// A ring whose tiles all consumer warps use turn by turn.
template <int stages, int threads, int blocks = 1> class TmaPipeline : TmaRing<stages, threads, blocks> {
  using Ring = TmaRing<stages, threads, blocks>;

 public:
  using Ring::release;
  using Ring::Ring;
  using Ring::wait;

  // load(k, full) for k = 0 .. turns - 1, each as soon as its slot is free; it starts the loads of tile k, which arrive
  // at `full`. With several blocks it returns when none uses this one's barriers any more. Who: the producer's threads,
  // of which one does it.
  template <class Load> TL_DEVICE void produce(int turns, const Load& load) const {
    tl::produce<threads>(turns, [&](int k) { load(k, Ring::acquire(k)); });
    if constexpr (blocks > 1) Ring::drain(turns);
  }
  // The same where a block has several loops of turns, one after the other: `slot` goes on from loop to loop.
  template <class Load> TL_DEVICE void produce(int turns, const Load& load, RingSlot<stages>& slot) const {
    static_assert(blocks == 1, "blocks of a cluster have one loop of turns");
    tl::produce<threads>(turns, [&](int k) { load(k, Ring::acquire(slot)), slot.advance(); });
  }

  // One turn: load(full) starts the loads of the tile of `slot`. Consumers wait for the slot, release and advance it.
  template <class Load> TL_DEVICE void produce_turn(const Load& load, RingSlot<stages>& slot) const {
    static_assert(blocks == 1, "blocks of a cluster have one loop of turns");
    if (thread() == threads) load(Ring::acquire(slot));
    slot.advance();
  }

  struct Iterator {
    int k;
    const Ring& ring;
    TL_DEVICE bool operator!=(const Iterator& end) const { return k != end.k; }
    TL_DEVICE int operator*() const { return ring.wait(k), k; }
    TL_DEVICE void operator++() { ring.release(k++); }
  };
  struct Turns {
    int count;
    const Ring& ring;
    TL_DEVICE Iterator begin() const { return {0, ring}; }
    TL_DEVICE Iterator end() const { return {count > 0 ? count : 0, ring}; }
  };
  // for (int k : pipeline.consume(turns)): in turn k tile k is there; at its end the slot is free for this warp. Who:
  // the first `threads` threads. No turns are legal; there is no break.
  TL_DEVICE Turns consume(int turns) const { return {turns, *this}; }

  struct SlotIterator {
    int k;
    RingSlot<stages>& slot;
    const Ring& ring;
    TL_DEVICE bool operator!=(const SlotIterator& end) const { return k != end.k; }
    TL_DEVICE int operator*() const { return ring.wait(slot), k; }
    TL_DEVICE void operator++() { ring.release(slot), slot.advance(), ++k; }
  };
  struct SlotTurns {
    int count;
    RingSlot<stages>& slot;
    const Ring& ring;
    TL_DEVICE SlotIterator begin() const { return {0, slot, ring}; }
    TL_DEVICE SlotIterator end() const { return {count > 0 ? count : 0, slot, ring}; }
  };
  // The same where a block has several loops of turns: in turn k the tile in `slot` is there.
  TL_DEVICE SlotTurns consume(int turns, RingSlot<stages>& slot) const { return {turns, slot, *this}; }
};

}  // namespace tl
