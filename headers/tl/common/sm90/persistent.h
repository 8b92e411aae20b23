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

// The number of a tile that a producer has drawn, for two tiles: the one that the others are at, and the next.
struct DrawnTiles {
  int number[2];
  Barrier drawn[2];  // a phase ends when the number is there
  Barrier read[2];   // a phase ends when all consumer warps have read it
};

// Deals the tiles of a grid to blocks that stay, one when a block asks for one: the blocks' first tiles have the
// blocks' numbers, then come the others in order. So blocks end together although their tiles take unequal time.
template <int threads> class TileQueue {
 public:
  // `next`: in global memory, from start_queue; for `count` tiles. Made before a ring, whose constructor shows the
  // barriers to the block. Who: every thread of the block, the producer too.
  TL_DEVICE TileQueue(DrawnTiles& drawn, int* next, int count) : drawn_(drawn), next_(next), count_(count) {
    if (thread() != 0) return;
    TL_UNROLL
    for (int slot = 0; slot < 2; ++slot) {
      mbarrier_init(drawn.drawn[slot], 1);
      mbarrier_init(drawn.read[slot], threads / warp_size);
    }
  }
  // The block's tile of this round, from 1 on; none, which is `count` or more, when all are dealt. Who: the producer's
  // one thread.
  TL_DEVICE int draw(int round) const {
    const int slot = round % 2, blocks = static_cast<int>(gridDim.x);
    const int number = blocks < count_ ? blocks + atomic_add(next_, 1) : count_;
    mbarrier_wait(drawn_.read[slot], ((round - 1) / 2 & 1) ^ 1);
    drawn_.number[slot] = number;
    mbarrier_arrive(drawn_.drawn[slot]);
    return number;
  }
  // The same, when it has been drawn. Who: whole consumer warps.
  TL_DEVICE int drawn(int round) const {
    const int slot = round % 2;
    mbarrier_wait(drawn_.drawn[slot], (round - 1) / 2 & 1);
    const int number = drawn_.number[slot];
    sync_warp();  // all lanes have read it
    if (lane() == 0) mbarrier_arrive(drawn_.read[slot]);
    return number;
  }

 private:
  DrawnTiles& drawn_;
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
