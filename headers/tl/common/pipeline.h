// Loops in which the next tiles are loaded while one is used.
#pragma once
#include "base.h"

namespace tl {

constexpr int counted_by_groups = -1;
template <int turns, int loads> TL_DEVICE void wait_for_direct_loads();  // cdna/direct.h

// The range of tl::cp_async_pipeline. Group k of each thread is tile k; after the last tile groups are empty, so that
// "at most stages - 2 groups in flight" always means that the tile of this turn has landed.
template <int stages, int loads, class Load> struct CpAsyncPipeline {
  static_assert(stages >= 1, "at least one slot");
  int trips;
  const Load& load;

  // A break leaves tiles on their way: they land before anything else can be where they go.
  TL_DEVICE ~CpAsyncPipeline() { wait<0>(trips); }

  struct Iterator {
    int k;
    const CpAsyncPipeline& pipeline;
    TL_DEVICE bool operator!=(const Iterator& end) const { return k != end.k; }
    TL_DEVICE void operator++() { ++k; }
    TL_DEVICE int operator*() const { return pipeline.turn(k), k; }
  };
  TL_DEVICE Iterator begin() const {
    TL_NO_UNROLL
    for (int k = 0; k < stages - 1; ++k) start(k);
    return {0, *this};
  }
  TL_DEVICE Iterator end() const { return {trips > 0 ? trips : 0, *this}; }

  TL_DEVICE void start(int k) const {
    if (k < trips) TL_INLINED load(k);
    if constexpr (loads == counted_by_groups) cp_async_commit();
  }
  // Until tile k has landed; `later` tiles behind it may be on their way.
  template <int later> TL_DEVICE void wait(int k) const {
    if constexpr (loads == counted_by_groups)
      cp_async_wait<later>();
    else if (k + later < trips)
      wait_for_direct_loads<later, loads>();
    else
      wait_for_direct_loads<0, loads>();
  }
  TL_DEVICE void turn(int k) const {
    if constexpr (stages == 1) {
      if (k > 0) sync_threads();  // all threads are done with tile k - 1
      start(k);
      wait<0>(k);
      sync_threads();  // everybody's part of tile k has landed
    } else {
      wait<stages - 2>(k);
      sync_threads();  // everybody's part of tile k has landed, and all threads are done with tile k - 1
      start(k + stages - 1);
    }
  }
};

// for (int k : tl::cp_async_pipeline<stages>(trips, load)): load(k) starts the copies of tile k into slot k % stages;
// in turn k tile k is there for all threads, and tiles up to k + stages - 1 are on their way.
// `loads`, on machines that count loads and no groups: how many of them each thread starts for a tile at least; by
// default groups are counted.
// Who: every thread of the block. The slots are free when the loop starts; after it, tl::sync_threads comes before
// anything writes to them. No trips are legal.
template <int stages, int loads = counted_by_groups, class Load>
TL_DEVICE CpAsyncPipeline<stages, loads, Load> cp_async_pipeline(int trips, const Load& load) {
  return {trips, load};
}

}  // namespace tl
