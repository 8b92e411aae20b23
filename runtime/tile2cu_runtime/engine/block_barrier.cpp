#include "block_barrier.h"

#include <algorithm>

#include "symbolize.h"
#include "worker.h"

namespace tile2cu::engine {

void BlockBarrier::reset() {
  arrived_ = votes_ = counted_ = 0;
  waiting_.clear();
  released_.clear();
  site_ = nullptr;
}

void BlockBarrier::check_agreement(Worker& worker, int barrier, int threads, Site site) const {
  if (expected_ != threads) {
    worker.report("barrier count mismatch", {site, site_}, [&] {
      return text("%s joins barrier %d at {0} for %d threads; others at {1} for %d", worker.describe_current().c_str(),
                  barrier, threads, expected_);
    });
  } else if (threads == whole_block && worker.options.check && !same_line(site_, site)) {
    worker.report("divergent __syncthreads", {site, site_}, [&] {
      return text("%s is at the barrier at {0} while others wait at {1}", worker.describe_current().c_str());
    });
  }
}

void BlockBarrier::arrive(Worker& worker, int barrier, int threads, Arrival arrival, Site site) {
  if (arrived_ == 0) {
    expected_ = threads;
    site_ = site;
  } else {
    check_agreement(worker, barrier, threads, site);
  }
  const ThreadNumber self = worker.current->linear;
  if (worker.options.check) {
    worker.clocks.release(self, released_);
    if (threads == whole_block && worker.block().living < worker.block_threads) {
      worker.report("__syncthreads with exited threads", {site}, [&] {
        return text("%d of %d threads of the block returned before the barrier at {0}",
                    worker.block_threads - worker.block().living, worker.block_threads);
      });
    }
  }
  ++arrived_;
  if (arrival == Arrival::wait) waiting_.push_back(self);
  if (arrived_ == (threads == whole_block ? worker.block().living : threads)) {
    complete(worker);
  } else if (arrival == Arrival::wait) {
    worker.block_current(barrier ? "named barrier" : "__syncthreads", site);
  }
}

void BlockBarrier::complete(Worker& worker) {
  for (ThreadNumber thread : waiting_) {
    if (worker.options.check) worker.clocks.acquire(thread, released_);
    if (thread != worker.current->linear) worker.make_ready(thread);
  }
  counted_ = votes_;
  arrived_ = votes_ = 0;
  waiting_.clear();
  std::fill(released_.begin(), released_.end(), 0);
}

void BlockBarrier::thread_returned(Worker& worker) {
  if (arrived_ == 0 || expected_ != whole_block || arrived_ != worker.block().living) return;
  if (worker.options.check) {
    worker.report("barrier after thread exit", {site_}, [&] {
      return text("__syncthreads at {0} completed only because %s returned", worker.describe_current().c_str());
    });
  }
  complete(worker);
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_sync_threads() {
  Worker& worker = current_worker();
  worker.block().barriers[0].arrive(worker, 0, BlockBarrier::whole_block, BlockBarrier::Arrival::wait,
                                    TILE2CU_CALL_SITE);
}

int tl_engine_sync_threads_count(int predicate) {
  Worker& worker = current_worker();
  BlockBarrier& barrier = worker.block().barriers[0];
  barrier.vote(predicate != 0);
  barrier.arrive(worker, 0, BlockBarrier::whole_block, BlockBarrier::Arrival::wait, TILE2CU_CALL_SITE);
  return barrier.votes();
}

void tl_engine_barrier_sync(int barrier, int threads) {
  Worker& worker = current_worker();
  worker.block().barriers[barrier & 15].arrive(worker, barrier, threads, BlockBarrier::Arrival::wait,
                                               TILE2CU_CALL_SITE);
}

void tl_engine_barrier_arrive(int barrier, int threads) {
  Worker& worker = current_worker();
  worker.block().barriers[barrier & 15].arrive(worker, barrier, threads, BlockBarrier::Arrival::go_on,
                                               TILE2CU_CALL_SITE);
}

}  // extern "C"
