// The cp.async copies and groups of one thread.
#pragma once
#include <cstdint>
#include <vector>

#include "basics.h"
#include "vector_clocks.h"

namespace tile2cu::engine {

struct Worker;
struct Thread;

struct PendingCopy {
  char* to;
  const char* from;
  std::uint32_t bytes, source_bytes;
  Site site;
  VectorClocks::Snapshot knows = {};  // of the thread when it issued it; empty where nothing writes the source
};

// A copy writes its destination as late as the programming model allows (at the wait for its group), or immediately
// with TL_ENGINE_EARLY.
struct CopyQueue {
  std::vector<PendingCopy> copies;
  std::vector<std::uint32_t> group_ends;  // index into copies, one past each committed group

  void issue(Worker& worker, PendingCopy copy);
  void commit() { group_ends.push_back(std::uint32_t(copies.size())); }
  void wait(Worker& worker, int groups_left);
  // Completes all copies of all groups, for an mbarrier that tracks them.
  void land_all(Worker& worker);
  // Called when the thread exits.
  void finish(Worker& worker);
};

}  // namespace tile2cu::engine
