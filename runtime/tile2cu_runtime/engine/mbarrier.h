// Memory barriers of sm_90: a phase completes when its arrivals and its announced bytes are all there.
//  [PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier]
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "basics.h"
#include "vector_clocks.h"

namespace tile2cu::engine {

struct Worker;

// An arrival from another block, the last of that thread.
struct RemoteArrival {
  ThreadNumber thread;
  Clock clock;
  Site site;
};

struct MemoryBarrier {
  bool initialised = false;
  int arrivals = 0;          // of a phase
  int pending_arrivals = 0;  // still missing
  long pending_bytes = 0;    // announced and not yet delivered
  std::uint32_t phase = 0;
  int agent = 0;  // component of the vector clocks that stands for copies into this barrier
  Clock agent_clock = 0;
  VectorClocks::Snapshot arriving, released;         // of the running phase, of the one before
  std::array<std::vector<ThreadNumber>, 2> waiting;  // by the parity they wait for
  std::vector<RemoteArrival> remote;
};

class MemoryBarriers {
 public:
  void reset();
  void initialise(Worker& worker, const void* barrier, int arrivals, Site site);
  void arrive(Worker& worker, const void* barrier, int announced_bytes, Site site);
  void expect(Worker& worker, const void* barrier, int announced_bytes, Site site);
  void wait(Worker& worker, const void* barrier, int parity, Site site);
  void arrive_and_wait(Worker& worker, const void* barrier, Site site);
  MemoryBarrier& find(Worker& worker, const void* barrier, Site site);
  // A copy delivered its bytes; it had seen what `knows` says.
  void deliver(Worker& worker, std::uint32_t offset, long bytes, const VectorClocks::Snapshot& knows);
  MemoryBarrier& at(std::uint32_t offset) { return barriers_[offset]; }
  void report_undelivered(Worker& worker) const;
  // The block of this rank has ended, and all its threads together know this: no arrival may come now.
  void end_of(Worker& worker, std::size_t rank, const VectorClocks::Snapshot& known) const;

 private:
  void note_remote(Worker& worker, MemoryBarrier& barrier, const void* at, Site site) const;
  void complete_if_done(Worker& worker, MemoryBarrier& barrier);
  std::unordered_map<std::uint32_t, MemoryBarrier> barriers_;  // by offset in the cluster's shared memory
  int agents_ = 0;
};

}  // namespace tile2cu::engine
