// mbarrier objects: a phase completes when its pending arrivals and its transaction count are zero.
// [PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier]
#pragma once
#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "basics.h"
#include "vector_clocks.h"

namespace tile2cu::engine {

struct Worker;

// The last arrival of a thread of another block.
struct RemoteArrival {
  ThreadNumber thread;
  Clock clock;
  Site site;
};

struct MemoryBarrier {
  bool initialised = false;
  int arrivals = 0;          // expected per phase
  int pending_arrivals = 0;  // of the current phase
  long pending_bytes = 0;    // expected and not yet delivered
  std::uint32_t phase = 0;
  int agent = 0;  // vector-clock component of the copies that complete on this barrier
  Clock agent_clock = 0;
  VectorClocks::Snapshot arriving, released;         // of the current phase, of the previous one
  std::array<std::vector<ThreadNumber>, 2> waiting;  // by awaited parity
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
  // A copy has delivered its bytes; `knows` is its vector clock.
  void deliver(Worker& worker, std::uint32_t offset, long bytes, const VectorClocks::Snapshot& knows);
  MemoryBarrier& at(std::uint32_t offset) { return barriers_[offset]; }
  void report_undelivered(Worker& worker) const;
  // The block with this rank has exited: reports arrivals that its threads had not synchronised with.
  void end_of(Worker& worker, std::size_t rank, const VectorClocks::Snapshot& known) const;

 private:
  void note_remote(Worker& worker, MemoryBarrier& barrier, const void* at, Site site) const;
  void complete_if_done(Worker& worker, MemoryBarrier& barrier);
  std::unordered_map<std::uint32_t, MemoryBarrier> barriers_;  // by offset in the shared memory of the cluster
  int agents_ = 0;
};

}  // namespace tile2cu::engine
