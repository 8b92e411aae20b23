// The barrier of a cluster's threads: barrier.cluster.arrive and barrier.cluster.wait.
//  [PTX ISA, Parallel Synchronization and Communication Instructions: barrier.cluster]
#pragma once
#include <cstdint>
#include <vector>

#include "basics.h"
#include "vector_clocks.h"

namespace tile2cu::engine {

struct Worker;

class ClusterBarrier {
 public:
  void reset();
  // The current thread arrives without waiting. With `releases` its writes are visible to the threads that wait.
  void arrive(Worker& worker, bool releases, Site site);
  // Waits until all non-exited threads of the cluster have arrived.
  void wait(Worker& worker, Site site);
  // The current thread has exited, which may complete the phase.
  void thread_returned(Worker& worker);

 private:
  void complete_if_done(Worker& worker);

  int arrived_ = 0;
  VectorClocks::Snapshot arriving_, released_;  // of the current phase, of the previous one
  std::vector<ThreadNumber> waiting_;
};

}  // namespace tile2cu::engine
