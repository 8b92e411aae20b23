// Blocks that stay: each takes tile after tile of a grid, and its producer loads for the next tile while the one before
// is in use.
#pragma once
#include "../../sm90_primitives.h"
#include "../base.h"
#include "../math.h"
#include "tma_pipeline.h"
#ifndef __CUDACC_RTC__
#include "../launch.h"
#endif

namespace tl {

// How many tiles a grid has. Any thread, and host side.
TL_BOTH int count(const dim3& tiles) { return static_cast<int>(tiles.x * tiles.y * tiles.z); }

// What a producer has drawn: the work of two tiles, of the one that the others are at, and of the next.
template <class Work> struct DrawnTiles {
  Work work[2];
  bool found[2];     // whether there was a tile
  Barrier drawn[2];  // a phase ends when these are there
  Barrier read[2];   // a phase ends when all consumer warps have read them
};

// Deals the tiles of a grid to blocks that stay, one when a block asks for one: the blocks' first tiles have the
// blocks' numbers, then come the others in order. So blocks end together although their tiles take unequal time. The
// producer computes where a tile lies, and its turns, for all.
template <int threads, class Work> class TileQueue {
 public:
  // `next`: in global memory, from start_queue; for `count` tiles.
  TL_DEVICE TileQueue(DrawnTiles<Work>& drawn, int* next, int count) : drawn_(drawn), next_(next), count_(count) {}
  // Initialises the barriers; then come mbarrier_init_fence and a barrier of the block. Called by: one thread.
  TL_DEVICE void init() const {
    TL_UNROLL
    for (int slot = 0; slot < 2; ++slot) {
      mbarrier_init(drawn_.drawn[slot], 1);
      mbarrier_init(drawn_.read[slot], threads / warp_size);
    }
  }
  // Whether there is a tile for the block in this round, from 0 on: its work, work_tile(number). Who: the producer's
  // one thread.
  template <class Place> TL_DEVICE bool draw(int round, Work& work, const Place& work_tile) const {
    const int number = round == 0 ? static_cast<int>(blockIdx.x) : next();
    if (number < count_) work = work_tile(number);
    return hand_on(round, work, number < count_);
  }
  // The same for all lanes of the producer's first warp. Who: that warp.
  template <class Place> TL_DEVICE bool draw_for_warp(int round, Work& work, const Place& work_tile) const {
    if (lane() == 0) draw(round, work, work_tile);
    sync_warp();  // what it has drawn is there for all
    work = drawn_.work[round % 2];
    return drawn_.found[round % 2];
  }
  // The same, when it has been drawn. Who: whole consumer warps.
  TL_DEVICE bool drawn(int round, Work& work) const {
    const bool found = take(round, work);
    sync_warp();  // all lanes have read them
    if (lane() == 0) mbarrier_arrive(drawn_.read[round % 2]);
    return found;
  }

 protected:
  // What the others see as drawn, when they have read what was drawn two rounds before. Returns `found`. Who: one
  // thread.
  TL_DEVICE bool hand_on(int round, const Work& work, bool found) const {
    const int slot = round % 2;
    mbarrier_wait(drawn_.read[slot], (round / 2 & 1) ^ 1);
    drawn_.work[slot] = work;
    drawn_.found[slot] = found;
    mbarrier_arrive(drawn_.drawn[slot]);
    return found;
  }
  // What has been drawn. Who: each thread that uses it.
  TL_DEVICE bool take(int round, Work& work) const {
    const int slot = round % 2;
    mbarrier_wait(drawn_.drawn[slot], round / 2 & 1);
    work = drawn_.work[slot];
    return drawn_.found[slot];
  }
  // The number of a tile that nobody has; `count` or more when all are dealt.
  TL_DEVICE int next() const {
    const int blocks = static_cast<int>(gridDim.x);
    return blocks < count_ ? blocks + atomic_add(next_, 1) : count_;
  }

  DrawnTiles<Work>& drawn_;
  int* next_;
  int count_;
};

// How many tiles a word of a BusyTileQueue has a bit for; its highest one says that the others are known.
constexpr int tiles_a_word = 31;

template <class Work> struct DealtTiles : DrawnTiles<Work> {
  Barrier wanted;   // a phase ends when the next tile is to be drawn
  uint32_t passed;  // how many tiles with work the words have that were gone through
};

// The same for a grid of which many tiles may be idle, as those past the end of a sequence: a warp beside the one that
// loads draws for all. The counter deals the tiles that have work: who draws n looks for the n-th of them. Words behind
// the counter have a bit for each tile, which blocks write together when they begin. A word that is not there yet a
// block works out by itself: none waits for another.
template <int threads, class Work> class BusyTileQueue : public TileQueue<threads, Work> {
  using Queue = TileQueue<threads, Work>;

 public:
  TL_DEVICE BusyTileQueue(DealtTiles<Work>& dealt, int* next, int count) : Queue(dealt, next, count), dealt_(dealt) {}
  // As of a TileQueue. Called by: one thread.
  TL_DEVICE void init() const {
    Queue::init();
    mbarrier_init(dealt_.wanted, 1);
    dealt_.passed = 0;
  }
  // Draws tiles until there is none, of those for which idle(work_tile(number)) does not hold. Who: the producer's
  // warps, but for the first. The second draws, the others note for all blocks which tiles have work.
  template <class Place, class Idle> TL_DEVICE void deal(const Place& work_tile, const Idle& idle) const {
    const int noting = warp() - first_warp - 1;
    if (noting >= 0) {
      constexpr int warps = producer_warpgroup / warp_size - 2;
      const int own = static_cast<int>(blockIdx.x) * warps + noting;
      for (int word = own; word < words(); word += static_cast<int>(gridDim.x) * warps) {
        const uint32_t bits = work_of(word, work_tile, idle);
        if (lane() == 0) store_atomically(Queue::next_ + 1 + word, static_cast<int>(bits));
      }
      return;
    }
    int own = lane();
    bool found = true;
    for (int round = 0; found; ++round) {
      int number = static_cast<int>(blockIdx.x);
      if (round > 0 || idle(work_tile(number))) number = find(round, own, work_tile, idle);
      found = number < Queue::count_;
      if (lane() == 0) Queue::hand_on(round, found ? work_tile(number) : Work{}, found);
      sync_warp();
    }
  }
  // Whether there is a tile in this round, from 0 on, for which to load: its work. Who: the producer's one thread that
  // loads.
  TL_DEVICE bool draw(int round, Work& work) const { return Queue::take(round, work); }
  // load(k) for k = 0 .. turns - 1, the turns of that tile. The next tile is drawn under the last turn's loads: later
  // its own would be late, and sooner blocks would not end together. Who: the same thread.
  template <class Load> TL_DEVICE void load_turns(int turns, const Load& load) const {
    if (turns <= 0) mbarrier_arrive(dealt_.wanted);
    TL_NO_UNROLL
    for (int k = 0; k < turns; ++k) {
      if (k == turns - 1) mbarrier_arrive(dealt_.wanted);
      load(k);
    }
  }

 private:
  static constexpr uint32_t known = uint32_t(1) << tiles_a_word;
  static constexpr int first_warp = threads / warp_size + 1;  // of those that draw and note
  TL_DEVICE int words() const { return ceildiv(Queue::count_ - static_cast<int>(gridDim.x), tiles_a_word); }
  // The word that says which tiles have work. Who: whole warps.
  template <class Place, class Idle>
  TL_DEVICE uint32_t work_of(int word, const Place& work_tile, const Idle& idle) const {
    const int number = static_cast<int>(gridDim.x) + word * tiles_a_word + lane();
    const bool here = lane() < tiles_a_word && number < Queue::count_;
    return known | static_cast<uint32_t>(ballot(here && !idle(work_tile(number))));
  }
  // The number of the next tile for this block. Goes through the words in order, 32 at a time, of which each lane has
  // its `own`; they are there when the tile is wanted.
  template <class Place, class Idle>
  TL_DEVICE int find(int round, int& own, const Place& work_tile, const Idle& idle) const {
    for (int dealt = 0; own - lane() < words(); own += warp_size) {
      const uint32_t bits = look(own, work_tile, idle);
      const uint32_t through = sum_of_lanes_below(popcount(bits)), here = shuffle(through, warp_size - 1);
      if (dealt == 0) {
        if (round > 0) mbarrier_wait(dealt_.wanted, (round - 1) & 1);
        dealt = shuffle(lane() == 0 ? Queue::next() : 0, 0);
      }
      uint32_t rank = static_cast<uint32_t>(dealt) - gridDim.x - dealt_.passed;  // among the tiles of these words
      if (rank < here) {
        const int from = first_lane(rank < through);
        rank -= shuffle(through - popcount(bits), from);
        const uint32_t its = shuffle(bits, from), lower = (uint32_t(1) << lane()) - 1;
        const int bit = first_lane((its >> lane() & 1) != 0 && popcount(its & lower) == rank);
        return static_cast<int>(gridDim.x) + shuffle(own, from) * tiles_a_word + bit;
      }
      sync_warp();  // all lanes have read it
      if (lane() == 0) dealt_.passed += here;
      sync_warp();
    }
    return Queue::count_;
  }
  // The bits of a word, a lane its own.
  template <class Place, class Idle> TL_DEVICE uint32_t look(int own, const Place& work_tile, const Idle& idle) const {
    uint32_t bits = own < words() ? 0 : known;
    while (true) {
      if (bits == 0) bits = static_cast<uint32_t>(load_atomically(Queue::next_ + 1 + own));
      const int missing = first_lane(bits == 0);
      if (missing < 0) return bits & ~known;
      const uint32_t worked_out = work_of(shuffle(own, missing), work_tile, idle);
      if (lane() == missing) bits = worked_out;
    }
  }
  // The sum of the values of this lane and of those below.
  static TL_DEVICE uint32_t sum_of_lanes_below(uint32_t value) {
    TL_UNROLL
    for (int distance = 1; distance < warp_size; distance *= 2) {
      const uint32_t before = shuffle_up(value, distance);
      if (lane() >= distance) value += before;
    }
    return value;
  }
  // The first lane for which it holds, or -1.
  static TL_DEVICE int first_lane(bool holds) { return first_set(static_cast<uint32_t>(ballot(holds))) - 1; }

  DealtTiles<Work>& dealt_;
};

// What a producer says of the tiles in a ring's slots: of which turn each is, or that there are no more turns.
template <int stages, class Turn> struct TakenTurns {
  Turn turn[stages];
  bool taken[stages];
};

// A ring for the tiles of a loop that skips turns: the producer finds those that are taken, and hands each on with its
// tile; who computes asks memory nothing. Behind a loop's last turn comes a slot without a tile.
template <int stages, int threads, class Turn> class TakenTurnsRing : public TmaPipeline<stages, threads> {
  using Ring = TmaPipeline<stages, threads>;

 public:
  TL_DEVICE TakenTurnsRing(TmaBarriers<stages>& barriers, TakenTurns<stages, Turn>& turns, int bytes)
      : Ring(barriers, bytes), turns_(turns) {}
  // As of a ring, for the tile of this turn. Who: the producer's one thread.
  TL_DEVICE Barrier& producer_acquire(int k, const Turn& turn) const {
    Ring::wait_until_empty(k);
    turns_.turn[k % stages] = turn;
    turns_.taken[k % stages] = true;
    return Ring::expect(k);
  }
  // There are no more turns: slot k has no tile. Who: the producer's one thread.
  TL_DEVICE void end(int k) const {
    Ring::wait_until_empty(k);
    turns_.taken[k % stages] = false;
    Ring::fill_without_tile(k);
  }
  // Waits for slot k. Whether it has the tile of a turn, and of which. Who: whole consumer warps.
  TL_DEVICE bool next(int k, Turn& turn) const {
    Ring::consumer_wait(k);
    const bool taken = turns_.taken[k % stages];
    if (taken)
      turn = turns_.turn[k % stages];
    else
      Ring::consumer_release(k);
    return taken;
  }

 private:
  TakenTurns<stages, Turn>& turns_;
};

#ifndef __CUDACC_RTC__
// Whether an int numbers the tiles of a grid of these extents, with those that blocks ask for past the last. Host side.
inline bool countable(int x, int y = 1, int z = 1) {
  constexpr int64_t most = 1 << 30;
  return z == 0 || (int64_t(x) * y <= most && int64_t(x) * y * z <= most);
}

// The grid of blocks that stay: one for each multiprocessor of the current device, or for each tile. Host side.
inline dim3 staying_blocks(const dim3& tiles) {
  const int most = multiprocessors();
  return dim3(count(tiles) < most ? count(tiles) : most);
}

// Makes the counter of a TileQueue ready for a launch of that grid, in the order of the stream; where each tile has a
// block nothing is drawn. Host side.
inline tl_status start_queue(int* next, const dim3& tiles, const dim3& grid, void* stream, size_t ints = 1) {
  const int error = static_cast<int>(grid.x) < count(tiles) ? zero_memory(next, ints * sizeof(int), stream) : 0;
  return error == 0 ? TL_OK : TL_LAUNCH_FAILED + error;
}

// The counter of a BusyTileQueue, and its words: how many ints they are, and the same as start_queue. Host side.
inline size_t busy_queue_ints(int64_t x, int64_t y = 1, int64_t z = 1) {
  return static_cast<size_t>(1 + ceildiv(x * y * z, int64_t(tiles_a_word)));
}
inline tl_status start_busy_queue(int* next, const dim3& tiles, const dim3& grid, void* stream) {
  return start_queue(next, tiles, grid, stream, busy_queue_ints(count(tiles)));
}
#endif

}  // namespace tl
