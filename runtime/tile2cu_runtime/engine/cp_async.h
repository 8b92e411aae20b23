// cp.async of one thread: copies in flight and the groups they were committed in.
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

// Data lands as late as the programming model allows (when its group is waited for), unless landing is early.
struct CopyQueue {
  std::vector<PendingCopy> copies;
  std::vector<std::uint32_t> group_ends;  // index into copies, one past each committed group

  void issue(Worker& worker, PendingCopy copy);
  void commit() { group_ends.push_back(std::uint32_t(copies.size())); }
  void wait(Worker& worker, int groups_left);
  // All land, whatever group they are in: a barrier is told, at which this thread need not wait.
  void land_all(Worker& worker);
  // At the end of the thread.
  void finish(Worker& worker);
};

}  // namespace tile2cu::engine
