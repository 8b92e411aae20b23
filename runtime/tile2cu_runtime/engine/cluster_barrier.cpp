#include "cluster_barrier.h"

#include <algorithm>
#include <utility>

#include "worker.h"

namespace tile2cu::engine {

void ClusterBarrier::reset() {
  arrived_ = 0;
  arriving_.clear();
  released_.clear();
  waiting_.clear();
}

void ClusterBarrier::arrive(Worker& worker, bool releases, Site site) {
  Thread& self = *worker.current;
  if (self.cluster_arrival != ClusterArrival::none) {
    worker.report("cluster arrival without a wait", {site}, [&] {
      return text("%s arrives at the cluster barrier at {0} without a wait since its previous arrival",
                  worker.describe_current().c_str());
    });
    worker.abandon();
  }
  self.cluster_arrival = ClusterArrival::pending;
  if (worker.options.check && releases) worker.clocks.release(self.linear, arriving_);
  ++arrived_;
  complete_if_done(worker);
}

void ClusterBarrier::wait(Worker& worker, Site site) {
  Thread& self = *worker.current;
  if (self.cluster_arrival == ClusterArrival::none) {
    worker.report("cluster wait without an arrival", {site}, [&] {
      return text("%s waits at the cluster barrier at {0} without an arrival", worker.describe_current().c_str());
    });
    worker.abandon();
  }
  if (self.cluster_arrival == ClusterArrival::pending) {
    waiting_.push_back(self.linear);
    worker.block_current("barrier.cluster", site);
  }
  self.cluster_arrival = ClusterArrival::none;
  if (worker.options.check) worker.clocks.acquire(self.linear, released_);
}

void ClusterBarrier::complete_if_done(Worker& worker) {
  if (arrived_ == 0 || arrived_ != worker.living()) return;
  for (Thread& thread : worker.threads) {
    if (thread.cluster_arrival == ClusterArrival::pending) thread.cluster_arrival = ClusterArrival::complete;
  }
  std::swap(released_, arriving_);
  std::fill(arriving_.begin(), arriving_.end(), 0);
  for (ThreadNumber thread : waiting_) worker.make_ready(thread);
  waiting_.clear();
  arrived_ = 0;
}

void ClusterBarrier::thread_returned(Worker& worker) {
  if (worker.current->cluster_arrival == ClusterArrival::pending) --arrived_;
  worker.current->cluster_arrival = ClusterArrival::none;
  complete_if_done(worker);
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

int tl_engine_block_rank() { return current_worker().current->block; }

void tl_engine_cluster_arrive(int releases) {
  Worker& worker = current_worker();
  worker.cluster_barrier.arrive(worker, releases != 0, TILE2CU_CALL_SITE);
}

void tl_engine_cluster_wait() {
  Worker& worker = current_worker();
  worker.cluster_barrier.wait(worker, TILE2CU_CALL_SITE);
}

void* tl_engine_in_block(const void* own, int rank) {
  Worker& worker = current_worker();
  const std::size_t offset = worker.own_offset(own);
  if (rank >= 0 && rank < int(worker.blocks.size()) && offset < Worker::arena_bytes) {
    return worker.arena + std::size_t(rank) * Worker::arena_bytes + offset;
  }
  worker.report("invalid cluster address", {TILE2CU_CALL_SITE}, [&] {
    if (offset >= Worker::arena_bytes) {
      return text("%s maps an address at {0} that is not in its own block's shared memory",
                  worker.describe_current().c_str());
    }
    return text("%s maps an address to rank %d at {0}; the cluster has %zu blocks", worker.describe_current().c_str(),
                rank, worker.blocks.size());
  });
  worker.abandon();
}

}  // extern "C"
