// Blocks that stay: each takes tile after tile of a grid, and its producer loads for the next tile while the one before
// is in use.
#pragma once
#include "../../sm90_primitives.h"
#include "../base.h"
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
  // `next`: in global memory, from start_queue; for `count` tiles. Made before a ring, whose constructor shows the
  // barriers to the block. Who: every thread of the block, the producer too.
  TL_DEVICE TileQueue(DrawnTiles<Work>& drawn, int* next, int count) : drawn_(drawn), next_(next), count_(count) {
    if (thread() != 0) return;
    TL_UNROLL
    for (int slot = 0; slot < 2; ++slot) {
      mbarrier_init(drawn.drawn[slot], 1);
      mbarrier_init(drawn.read[slot], threads / warp_size);
    }
  }
  // Whether there is a tile for the block in this round, from 0 on: its work, work_tile(number). Passes over tiles of
  // whose work `idle` says that it is none. Who: the producer's one thread.
  template <class Place, class Idle>
  TL_DEVICE bool draw(int round, Work& work, const Place& work_tile, const Idle& idle) const {
    int number = round == 0 ? static_cast<int>(blockIdx.x) : next();
    while (number < count_ && idle(work = work_tile(number))) number = next();
    const int slot = round % 2;
    mbarrier_wait(drawn_.read[slot], (round / 2 & 1) ^ 1);
    drawn_.work[slot] = work;
    drawn_.found[slot] = number < count_;
    mbarrier_arrive(drawn_.drawn[slot]);
    return number < count_;
  }
  template <class Place> TL_DEVICE bool draw(int round, Work& work, const Place& work_tile) const {
    return draw(round, work, work_tile, [](const Work&) { return false; });
  }
  // The same, when it has been drawn. Who: whole consumer warps.
  TL_DEVICE bool drawn(int round, Work& work) const {
    const int slot = round % 2;
    mbarrier_wait(drawn_.drawn[slot], round / 2 & 1);
    work = drawn_.work[slot];
    const bool found = drawn_.found[slot];
    sync_warp();  // all lanes have read them
    if (lane() == 0) mbarrier_arrive(drawn_.read[slot]);
    return found;
  }

 private:
  // The number of a tile that nobody has; `count` or more when all are dealt.
  TL_DEVICE int next() const {
    const int blocks = static_cast<int>(gridDim.x);
    return blocks < count_ ? blocks + atomic_add(next_, 1) : count_;
  }

  DrawnTiles<Work>& drawn_;
  int* next_;
  int count_;
};

#ifndef __CUDACC_RTC__
// Whether an int numbers the tiles of a grid of these extents, with those that blocks ask for past the last. Host side.
inline bool countable(int x, int y = 1, int z = 1) {
  constexpr int64_t most = 1 << 30;
  return int64_t(x) * y <= most && int64_t(x) * y * z <= most;
}

// The grid of blocks that stay: one for each multiprocessor of the current device, or for each tile. Host side.
inline dim3 staying_blocks(const dim3& tiles) {
  const int most = multiprocessors();
  return dim3(count(tiles) < most ? count(tiles) : most);
}

// Makes the counter of a TileQueue ready for a launch of that grid, in the order of the stream; where each tile has a
// block nothing is drawn. Host side.
inline tl_status start_queue(int* next, const dim3& tiles, const dim3& grid, void* stream) {
  const int error = static_cast<int>(grid.x) < count(tiles) ? zero_memory(next, sizeof(int), stream) : 0;
  return error == 0 ? TL_OK : TL_LAUNCH_FAILED + error;
}
#endif

}  // namespace tl
