#include "mbarrier.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "worker.h"

namespace tile2cu::engine {

namespace {

// The mbarrier's block, if it is not the current thread's.
std::string place(const Worker& worker, std::uint32_t offset) {
  const std::size_t rank = offset / Worker::arena_bytes;
  return rank == worker.current->block ? "" : text(" of block %u", worker.blocks[rank].number);
}

void report_late(Worker& worker, const RemoteArrival& arrival, std::size_t rank) {
  worker.report("shared memory of an exited block", {arrival.site}, [&] {
    return text("%s arrives at {0} at an mbarrier of block %u, which may have exited",
                worker.describe(arrival.thread).c_str(), worker.blocks[rank].number);
  });
}

}  // namespace

void MemoryBarriers::reset() {
  barriers_.clear();
  agents_ = 0;
}

void MemoryBarriers::initialise(Worker& worker, const void* barrier, int arrivals, Site site) {
  const auto offset = std::uint32_t(worker.shared_offset(barrier));
  MemoryBarrier fresh;
  fresh.initialised = true;
  fresh.arrivals = fresh.pending_arrivals = arrivals;
  fresh.agent = agents_++ % VectorClocks::agents;  // two mbarriers may share one, which only hides races between them
  if (worker.options.check) {
    const ThreadNumber self = worker.current->linear;
    const Clock* knows = worker.clocks.row(self);
    SharedShadow& shadow = worker.shadow_at(offset);
    shadow.write(worker, offset, 8, {self, knows, knows[self], site}, granule_initialised);
    shadow.mark_mbarrier(offset);
  }
  barriers_[offset] = std::move(fresh);
}

MemoryBarrier& MemoryBarriers::find(Worker& worker, const void* barrier, Site site) {
  const auto offset = std::uint32_t(worker.shared_offset(barrier));
  MemoryBarrier& state = barriers_[offset];
  if (!state.initialised) {
    worker.report("mbarrier used before init", {site, nullptr, std::int64_t(offset % Worker::arena_bytes)}, [&] {
      return text("%s uses the mbarrier at shared offset %zu%s at {0} before its initialisation",
                  worker.describe_current().c_str(), offset % Worker::arena_bytes, place(worker, offset).c_str());
    });
    return state;
  }
  if (worker.options.check && offset % Worker::arena_bytes + 8 <= worker.launch.request.shared_bytes) {
    const Granule& granule = worker.shadow_at(offset).at(offset);
    if (granule.write_clock > worker.clocks.row(worker.current->linear)[granule.writer]) {
      worker.report("mbarrier init not visible", {site, granule.write_site, std::int64_t(offset % Worker::arena_bytes)},
                    [&] {
                      return text("%s uses the mbarrier%s at {0} without a %s barrier since its initialisation at {1}",
                                  worker.describe_current().c_str(), place(worker, offset).c_str(),
                                  offset / Worker::arena_bytes == worker.current->block ? "block" : "cluster");
                    });
    }
  }
  return state;
}

void MemoryBarriers::arrive(Worker& worker, const void* barrier, int announced_bytes, Site site) {
  MemoryBarrier& state = find(worker, barrier, site);
  if (!state.initialised) return;
  if (worker.options.check) {
    note_remote(worker, state, barrier, site);
    worker.clocks.release(worker.current->linear, state.arriving);
  }
  state.pending_bytes += announced_bytes;
  if (state.pending_arrivals == 0) {
    worker.report("mbarrier over-arrival", {site}, [&] {
      return text("%s arrives at {0}, but the phase already has all of its %d arrivals",
                  worker.describe_current().c_str(), state.arrivals);
    });
  } else {
    state.pending_arrivals--;
  }
  complete_if_done(worker, state);
}

void MemoryBarriers::note_remote(Worker& worker, MemoryBarrier& barrier, const void* at, Site site) const {
  const Thread& self = *worker.current;
  const std::size_t rank = worker.shared_offset(at) / Worker::arena_bytes;
  if (rank == self.block) return;
  const RemoteArrival arrival{self.linear, worker.clocks.row(self.linear)[self.linear], site};
  if (worker.blocks[rank].living == 0) report_late(worker, arrival, rank);
  for (RemoteArrival& earlier : barrier.remote) {
    if (earlier.thread != self.linear) continue;
    earlier = arrival;
    return;
  }
  barrier.remote.push_back(arrival);
}

void MemoryBarriers::end_of(Worker& worker, std::size_t rank, const VectorClocks::Snapshot& known) const {
  for (const auto& [offset, barrier] : barriers_) {
    if (offset / Worker::arena_bytes != rank) continue;
    for (const RemoteArrival& arrival : barrier.remote) {
      if (arrival.clock > known[arrival.thread]) report_late(worker, arrival, rank);
    }
  }
}

void MemoryBarriers::expect(Worker& worker, const void* barrier, int announced_bytes, Site site) {
  MemoryBarrier& state = find(worker, barrier, site);
  if (state.initialised) state.pending_bytes += announced_bytes;
}

void MemoryBarriers::complete_if_done(Worker& worker, MemoryBarrier& barrier) {
  if (barrier.pending_arrivals != 0 || barrier.pending_bytes != 0) return;
  auto& waiting = barrier.waiting[barrier.phase & 1];
  barrier.phase++;
  barrier.pending_arrivals = barrier.arrivals;
  std::swap(barrier.released, barrier.arriving);
  std::fill(barrier.arriving.begin(), barrier.arriving.end(), 0);
  for (ThreadNumber thread : waiting) {
    if (worker.options.check) worker.clocks.acquire(thread, barrier.released);
    worker.make_ready(thread);
  }
  waiting.clear();
}

void MemoryBarriers::wait(Worker& worker, const void* barrier, int parity, Site site) {
  MemoryBarrier& state = find(worker, barrier, site);
  if (int(state.phase & 1) != (parity & 1)) {  // that phase has completed
    if (worker.options.check) worker.clocks.acquire(worker.current->linear, state.released);
    return;
  }
  state.waiting[parity & 1].push_back(worker.current->linear);
  worker.block_current("mbarrier wait", site);
}

void MemoryBarriers::arrive_and_wait(Worker& worker, const void* barrier, Site site) {
  const int parity = int(find(worker, barrier, site).phase & 1);
  arrive(worker, barrier, 0, site);
  wait(worker, barrier, parity, site);
}

void MemoryBarriers::deliver(Worker& worker, std::uint32_t offset, long bytes, const VectorClocks::Snapshot& knows) {
  MemoryBarrier& barrier = barriers_[offset];
  if (worker.options.check) {
    if (barrier.arriving.empty()) barrier.arriving.assign(worker.clocks.columns(), 0);
    worker.clocks.join(barrier.arriving.data(), knows.data());
  }
  barrier.pending_bytes -= bytes;
  complete_if_done(worker, barrier);
}

void MemoryBarriers::report_undelivered(Worker& worker) const {
  for (const auto& [offset, barrier] : barriers_) {
    if (barrier.pending_bytes == 0) continue;
    const auto local = std::uint32_t(offset % Worker::arena_bytes);
    worker.report("mbarrier left with pending bytes", {nullptr, nullptr, local}, [&, &left = barrier] {
      return text("the mbarrier at shared offset %u is left with %ld bytes %s", local, std::labs(left.pending_bytes),
                  left.pending_bytes > 0 ? "expected but not delivered" : "delivered but not expected");
    });
  }
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_mbarrier_init(void* barrier, int arrivals) {
  Worker& worker = current_worker();
  worker.memory_barriers.initialise(worker, barrier, arrivals, TILE2CU_CALL_SITE);
}

void tl_engine_mbarrier_arrive(void* barrier) {
  Worker& worker = current_worker();
  worker.memory_barriers.arrive(worker, barrier, 0, TILE2CU_CALL_SITE);
}

void tl_engine_mbarrier_arrive_expect(void* barrier, int bytes) {
  Worker& worker = current_worker();
  worker.memory_barriers.arrive(worker, barrier, bytes, TILE2CU_CALL_SITE);
}

void tl_engine_mbarrier_expect(void* barrier, int bytes) {
  Worker& worker = current_worker();
  worker.memory_barriers.expect(worker, barrier, bytes, TILE2CU_CALL_SITE);
}

void tl_engine_mbarrier_wait(void* barrier, int parity) {
  Worker& worker = current_worker();
  worker.memory_barriers.wait(worker, barrier, parity, TILE2CU_CALL_SITE);
}

void tl_engine_mbarrier_arrive_and_wait(void* barrier) {
  Worker& worker = current_worker();
  worker.memory_barriers.arrive_and_wait(worker, barrier, TILE2CU_CALL_SITE);
}

void tl_engine_fence_async_proxy() {
  Worker& worker = current_worker();
  if (!worker.options.check) return;
  Thread& self = *worker.current;
  worker.clocks.tick(self.linear);
  const Clock* knows = worker.clocks.row(self.linear);
  self.proxy_fence = knows[self.linear];
  self.knew_at_fence.assign(knows, knows + worker.clocks.columns());
  worker.clocks.tick(self.linear);  // later stores are not covered by the fence
}

}  // extern "C"
