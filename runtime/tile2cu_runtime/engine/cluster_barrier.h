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
  // The current thread is there, and goes on. What it wrote is visible to those that wait if it `releases`.
  void arrive(Worker& worker, bool releases, Site site);
  // Waits until all threads of the cluster have arrived that have not returned.
  void wait(Worker& worker, Site site);
  // The current thread returned: the others may have been waiting for it alone.
  void thread_returned(Worker& worker);

 private:
  void complete_if_done(Worker& worker);

  int arrived_ = 0;
  VectorClocks::Snapshot arriving_, released_;  // of the running phase, of the one before
  std::vector<ThreadNumber> waiting_;
};

}  // namespace tile2cu::engine
