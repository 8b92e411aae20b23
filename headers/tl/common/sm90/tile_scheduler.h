// Persistent kernels: each block processes several output tiles, and its producer prefetches for the next tile during
// the consumers' current one.
#pragma once
#include "../../sm90_primitives.h"
#include "../base.h"
#include "../math.h"
#include "tma_pipeline.h"
#ifndef __CUDACC_RTC__
#include "../launch.h"
#endif

namespace tl {

// The number of tiles of a grid. Any thread, and host side.
TL_BOTH int num_tiles(const dim3& tiles) { return static_cast<int>(tiles.x * tiles.y * tiles.z); }

// What a producer has fetched: the work of two tiles, the consumers' current one and the next.
template <class Work> struct ScheduledTiles {
  Work work[2];
  bool found[2];     // whether there was a tile
  Barrier full[2];   // a phase completes when work and found are written
  Barrier empty[2];  // a phase completes when all consumer warps have read them
};

// Dynamic tile scheduler: block b starts with tile b; the other tiles are assigned in order, by an atomic counter, as
// blocks ask for them. This balances tiles of unequal cost. The producer computes a tile's coordinates and trip count
// for all threads of its block.
template <int threads, class Work> class DynamicTileScheduler {
 public:
  // `next`: the counter in global memory, zeroed by reset_tile_counter; `count`: the number of tiles.
  TL_DEVICE DynamicTileScheduler(ScheduledTiles<Work>& tiles, int* next, int count)
      : tiles_(tiles), next_(next), count_(count) {}
  // Initialises the barriers; mbarrier_init_fence and a block barrier must follow. Called by: one thread.
  TL_DEVICE void init() const {
    TL_UNROLL
    for (int stage = 0; stage < 2; ++stage) {
      mbarrier_init(tiles_.full[stage], 1);
      mbarrier_init(tiles_.empty[stage], threads / warp_size);
    }
  }
  // Fetches the block's tile number `tile_iter`, from 0 on, and publishes its work, work_tile(number), to the
  // consumers. Returns whether there is one. Called by: the producer's one thread.
  template <class Place> TL_DEVICE bool fetch(int tile_iter, Work& work, const Place& work_tile) const {
    const int number = tile_iter == 0 ? static_cast<int>(blockIdx.x) : next();
    if (number < count_) work = work_tile(number);
    return publish(tile_iter, work, number < count_);
  }
  // The same for all lanes of the producer's first warp. Called by: that warp.
  template <class Place> TL_DEVICE bool fetch_for_warp(int tile_iter, Work& work, const Place& work_tile) const {
    if (lane() == 0) fetch(tile_iter, work, work_tile);
    sync_warp();  // what lane 0 has fetched is visible to all
    work = tiles_.work[tile_iter % 2];
    return tiles_.found[tile_iter % 2];
  }
  // Waits until the producer has fetched the block's tile number `tile_iter`. Returns whether there is one. Called by:
  // whole consumer warps.
  TL_DEVICE bool next_tile(int tile_iter, Work& work) const {
    const bool found = take(tile_iter, work);
    sync_warp();  // all lanes have read them
    if (lane() == 0) mbarrier_arrive(tiles_.empty[tile_iter % 2]);
    return found;
  }

 protected:
  // Publishes a fetched tile in its stage, after the consumers have read the tile of two iterations before. Returns
  // `found`. Called by: one thread.
  TL_DEVICE bool publish(int tile_iter, const Work& work, bool found) const {
    const int stage = tile_iter % 2;
    mbarrier_wait(tiles_.empty[stage], (tile_iter / 2 & 1) ^ 1);
    tiles_.work[stage] = work;
    tiles_.found[stage] = found;
    mbarrier_arrive(tiles_.full[stage]);
    return found;
  }
  // Waits for a published tile and reads it. Called by: each thread that uses it.
  TL_DEVICE bool take(int tile_iter, Work& work) const {
    const int stage = tile_iter % 2;
    mbarrier_wait(tiles_.full[stage], tile_iter / 2 & 1);
    work = tiles_.work[stage];
    return tiles_.found[stage];
  }
  // The index of the next unassigned tile; `count` or more if there is none.
  TL_DEVICE int next() const {
    const int blocks = static_cast<int>(gridDim.x);
    return blocks < count_ ? blocks + atomic_add(next_, 1) : count_;
  }

  ScheduledTiles<Work>& tiles_;
  int* next_;
  int count_;
};

// The tiles per word of a NonEmptyTileScheduler's bit mask; the highest bit marks the word as written.
constexpr int tiles_per_word = 31;

template <class Work> struct ScheduledNonEmptyTiles : ScheduledTiles<Work> {
  Barrier wanted;   // a phase completes when the next tile is requested
  uint32_t passed;  // the number of non-empty tiles in the words already searched
};

// The same for a grid with many empty tiles, such as those past the end of a sequence: a warp other than the loading
// one fetches tiles for the block. The counter counts non-empty tiles only: fetch n searches for the n-th of them.
// After the counter comes a bit mask over all tiles, which the blocks write jointly when they start. A block computes a
// word that is not yet written itself: no block waits for another.
template <int threads, class Work> class NonEmptyTileScheduler : public DynamicTileScheduler<threads, Work> {
  using Base = DynamicTileScheduler<threads, Work>;

 public:
  TL_DEVICE NonEmptyTileScheduler(ScheduledNonEmptyTiles<Work>& tiles, int* next, int count)
      : Base(tiles, next, count), shared_(tiles) {}
  // As DynamicTileScheduler::init. Called by: one thread.
  TL_DEVICE void init() const {
    Base::init();
    mbarrier_init(shared_.wanted, 1);
    shared_.passed = 0;
  }
  // Fetches the tiles for which empty(work_tile(number)) is false, until there are none. Called by: the producer's
  // warps except the first. The second warp fetches, the others write the bit mask for all blocks.
  template <class Place, class Empty> TL_DEVICE void schedule(const Place& work_tile, const Empty& empty) const {
    const int writer = warp() - first_warp - 1;
    if (writer >= 0) {
      constexpr int warps = producer_warpgroup / warp_size - 2;
      const int own = static_cast<int>(blockIdx.x) * warps + writer;
      for (int word = own; word < words(); word += static_cast<int>(gridDim.x) * warps) {
        const uint32_t bits = work_of(word, work_tile, empty);
        if (lane() == 0) store_atomically(Base::next_ + 1 + word, static_cast<int>(bits));
      }
      return;
    }
    int own = lane();
    bool found = true;
    for (int tile_iter = 0; found; ++tile_iter) {
      int number = static_cast<int>(blockIdx.x);
      if (tile_iter > 0 || empty(work_tile(number))) number = find(tile_iter, own, work_tile, empty);
      found = number < Base::count_;
      if (lane() == 0) Base::publish(tile_iter, found ? work_tile(number) : Work{}, found);
      sync_warp();
    }
  }
  // Waits for the block's tile number `tile_iter`. Returns whether there is one to load for. Called by: the producer's
  // one thread that loads.
  TL_DEVICE bool fetch(int tile_iter, Work& work) const { return Base::take(tile_iter, work); }
  // Calls load(k) for k = 0 .. iterations - 1. The next tile is requested before the last iteration's loads: a later
  // request would delay the next tile's first loads, an earlier one would unbalance the blocks. Called by: the same
  // thread.
  template <class Load> TL_DEVICE void load_iterations(int iterations, const Load& load) const {
    if (iterations <= 0) mbarrier_arrive(shared_.wanted);
    TL_NO_UNROLL
    for (int k = 0; k < iterations; ++k) {
      if (k == iterations - 1) mbarrier_arrive(shared_.wanted);
      load(k);
    }
  }

 private:
  static constexpr uint32_t known = uint32_t(1) << tiles_per_word;
  static constexpr int first_warp = threads / warp_size + 1;  // the fetching warp; the writers follow
  TL_DEVICE int words() const { return ceildiv(Base::count_ - static_cast<int>(gridDim.x), tiles_per_word); }
  // A word of the bit mask: which tiles are not empty. Called by: whole warps.
  template <class Place, class Empty>
  TL_DEVICE uint32_t work_of(int word, const Place& work_tile, const Empty& empty) const {
    const int number = static_cast<int>(gridDim.x) + word * tiles_per_word + lane();
    const bool here = lane() < tiles_per_word && number < Base::count_;
    return known | static_cast<uint32_t>(ballot(here && !empty(work_tile(number))));
  }
  // The index of this block's next tile. Searches the words in order, 32 at a time, one per lane (`own`); the words are
  // read before the tile is requested.
  template <class Place, class Empty>
  TL_DEVICE int find(int tile_iter, int& own, const Place& work_tile, const Empty& empty) const {
    for (int rank_of_all = 0; own - lane() < words(); own += warp_size) {
      const uint32_t bits = look(own, work_tile, empty);
      const uint32_t through = sum_of_lanes_below(popcount(bits)), here = shuffle(through, warp_size - 1);
      if (rank_of_all == 0) {
        if (tile_iter > 0) mbarrier_wait(shared_.wanted, (tile_iter - 1) & 1);
        rank_of_all = shuffle(lane() == 0 ? Base::next() : 0, 0);
      }
      uint32_t rank = static_cast<uint32_t>(rank_of_all) - gridDim.x - shared_.passed;  // rank within these words
      if (rank < here) {
        const int from = first_lane(rank < through);
        rank -= shuffle(through - popcount(bits), from);
        const uint32_t its = shuffle(bits, from), lower = (uint32_t(1) << lane()) - 1;
        const int bit = first_lane((its >> lane() & 1) != 0 && popcount(its & lower) == rank);
        return static_cast<int>(gridDim.x) + shuffle(own, from) * tiles_per_word + bit;
      }
      sync_warp();  // all lanes have read it
      if (lane() == 0) shared_.passed += here;
      sync_warp();
    }
    return Base::count_;
  }
  // Each lane's word; words that are not yet written are computed.
  template <class Place, class Empty>
  TL_DEVICE uint32_t look(int own, const Place& work_tile, const Empty& empty) const {
    uint32_t bits = own < words() ? 0 : known;
    while (true) {
      if (bits == 0) bits = static_cast<uint32_t>(load_atomically(Base::next_ + 1 + own));
      const int missing = first_lane(bits == 0);
      if (missing < 0) return bits & ~known;
      const uint32_t computed = work_of(shuffle(own, missing), work_tile, empty);
      if (lane() == missing) bits = computed;
    }
  }
  // Inclusive prefix sum over the lanes.
  static TL_DEVICE uint32_t sum_of_lanes_below(uint32_t value) {
    TL_UNROLL
    for (int distance = 1; distance < warp_size; distance *= 2) {
      const uint32_t before = shuffle_up(value, distance);
      if (lane() >= distance) value += before;
    }
    return value;
  }
  // The first lane for which `holds` is true, or -1.
  static TL_DEVICE int first_lane(bool holds) { return first_set(static_cast<uint32_t>(ballot(holds))) - 1; }

  ScheduledNonEmptyTiles<Work>& shared_;
};

// What a producer publishes with each stage: the iteration of its tile, or the end of the loop.
template <int stages, class Iteration> struct ActiveIterations {
  Iteration iteration[stages];
  bool active[stages];
};

// The pipeline of a loop with skipped iterations: the producer determines the active ones and publishes the index of
// each with its stage, so that consumers do not evaluate the condition. A stage without a tile ends the loop.
template <int stages, int threads, class Iteration>
class ActiveIterationPipeline : public TmaPipeline<stages, threads> {
  using Pipeline = TmaPipeline<stages, threads>;

 public:
  TL_DEVICE ActiveIterationPipeline(TmaBarriers<stages>& barriers, ActiveIterations<stages, Iteration>& iterations,
                                    int bytes)
      : Pipeline(barriers, bytes), iterations_(iterations) {}
  // As TmaPipeline::producer_acquire, for the tile of this iteration. Called by: the producer's one thread.
  TL_DEVICE Barrier& producer_acquire(int k, const Iteration& iteration) const {
    Pipeline::wait_until_empty(k);
    iterations_.iteration[k % stages] = iteration;
    iterations_.active[k % stages] = true;
    return Pipeline::expect(k);
  }
  // Publishes the end of the loop as stage k, without a tile. Called by: the producer's one thread.
  TL_DEVICE void end(int k) const {
    Pipeline::wait_until_empty(k);
    iterations_.active[k % stages] = false;
    Pipeline::fill_without_tile(k);
  }
  // Waits for stage k. Returns whether it holds a tile, and its iteration. Called by: whole consumer warps.
  TL_DEVICE bool next(int k, Iteration& iteration) const {
    Pipeline::consumer_wait(k);
    const bool active = iterations_.active[k % stages];
    if (active)
      iteration = iterations_.iteration[k % stages];
    else
      Pipeline::consumer_release(k);
    return active;
  }

 private:
  ActiveIterations<stages, Iteration>& iterations_;
};

#ifndef __CUDACC_RTC__
// Whether tile indices fit in an int, also those that blocks fetch past the last tile. Host side.
inline bool tile_count_fits_int(int x, int y = 1, int z = 1) {
  constexpr int64_t most = 1 << 30;
  return z == 0 || (int64_t(x) * y <= most && int64_t(x) * y * z <= most);
}

// The grid of a persistent kernel: one block per SM of the current device, or per tile if there are fewer. Host side.
inline dim3 persistent_grid(const dim3& tiles) {
  if (is_empty(tiles)) return dim3(0);
  const int most = multiprocessors();
  return dim3(num_tiles(tiles) < most ? num_tiles(tiles) : most);
}

// Zeroes the counter of a DynamicTileScheduler for a launch with this grid, in stream order; skipped if every tile has
// its own block, because the counter is then unused. Host side.
inline tl_status reset_tile_counter(int* next, const dim3& tiles, const dim3& grid, void* stream, size_t ints = 1) {
  const int error = static_cast<int>(grid.x) < num_tiles(tiles) ? zero_memory(next, ints * sizeof(int), stream) : 0;
  return error == 0 ? TL_OK : TL_LAUNCH_FAILED + error;
}

// The size in ints of a NonEmptyTileScheduler's counter and bit mask, and their reset. Host side.
inline size_t non_empty_tile_counter_ints(int64_t x, int64_t y = 1, int64_t z = 1) {
  return static_cast<size_t>(1 + ceildiv(x * y * z, int64_t(tiles_per_word)));
}
inline tl_status reset_non_empty_tile_counter(int* next, const dim3& tiles, const dim3& grid, void* stream) {
  return reset_tile_counter(next, tiles, grid, stream, non_empty_tile_counter_ints(num_tiles(tiles)));
}
#endif

}  // namespace tl
