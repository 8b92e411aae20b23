#include "worker.h"

#include <cstring>
#include <map>
#include <utility>

// CUDA's built-in variables. Kernels read them directly, so they are rewritten whenever another thread goes on.
#define TILE2CU_VARIABLE __thread __attribute__((tls_model("initial-exec")))
TILE2CU_VARIABLE uint3 threadIdx, blockIdx;
TILE2CU_VARIABLE dim3 blockDim, gridDim;
TILE2CU_VARIABLE int tl_engine_thread;

namespace tile2cu::engine {

TILE2CU_VARIABLE Worker* active_worker = nullptr;

namespace {

constexpr unsigned char unwritten = 0xff;  // a NaN in every floating-point type

void run_current_thread() {
  Worker& worker = current_worker();
  worker.launch.request.run_thread(worker.launch.request.argument);
  worker.return_current();
}

uint3 unravel(std::uint32_t linear, const std::uint32_t (&extents)[3]) {
  return {linear % extents[0], linear / extents[0] % extents[1], linear / extents[0] / extents[1]};
}

}  // namespace

Worker::Worker(LaunchState& launch_, int number)
    : launch(launch_),
      options(launch_.options),
      random(launch_.options.seed + 0x632BE59Bu * std::uint64_t(number)),
      arena(Workspace::of_worker(number).arena()),
      stacks_(Workspace::of_worker(number).stacks()) {
  active_worker = this;
}

Worker::~Worker() { active_worker = nullptr; }

void Worker::run_blocks() {
  const auto& grid = launch.request.grid;
  const std::uint32_t blocks = grid[0] * grid[1] * grid[2];
  while (!launch.abandoned) {
    const std::uint32_t number = launch.next_block++;
    if (number >= blocks) break;
    if (launch.grid_barrier) launch.grid_barrier->begin(number);
    if (!launch.abandoned) run_block(number);
    block_number = number;
    if (launch.grid_barrier) launch.grid_barrier->end(*this);
  }
}

void Worker::run_block(std::uint32_t number) {
  begin_block(number);
  Thread* first = next_thread();
  current = first;
  threadIdx = first->index;
  tl_engine_thread = first->linear;
  running = true;
  switch_fiber(scheduler_fiber_, first->fiber);
  running = false;
  end_block();
}

void Worker::begin_block(std::uint32_t number) {
  const auto& request = launch.request;
  block_number = number;
  blockIdx = unravel(number, request.grid);
  blockDim = dim3(request.block[0], request.block[1], request.block[2]);
  gridDim = dim3(request.grid[0], request.grid[1], request.grid[2]);
  living = block_threads = int(request.block[0] * request.block[1] * request.block[2]);
  const int warp_count = (block_threads + request.warp_size - 1) / request.warp_size;

  warps.assign(warp_count, {});
  warpgroups.assign((block_threads + threads_per_warpgroup - 1) / threads_per_warpgroup, {});
  for (BlockBarrier& barrier : barriers) barrier.reset();
  memory_barriers.reset();
  tma.reset();
  std::memset(arena, unwritten, request.shared_bytes);
  if (options.check) {
    clocks.reset(block_threads);
    shared_shadow.reset(request.shared_bytes, clocks.columns());
  }
  if (options.statistics) requests.begin_block(warp_count, request.warp_size, options.banks);
  start_threads();
}

void Worker::start_threads() {
  stacks_.reserve(block_threads);
  threads.resize(block_threads);
  ready_.clear();
  for (int number = 0; number < block_threads; ++number) {
    Thread& thread = threads[number];
    thread.index = unravel(number, launch.request.block);
    thread.linear = ThreadNumber(number);
    thread.warp = std::uint16_t(number / launch.request.warp_size);
    thread.lane = std::uint16_t(number % launch.request.warp_size);
    thread.copies = {};
    thread.stores = {};
    thread.proxy_fence = 0;
    thread.knew_at_fence.clear();
    prepare_fiber(thread.fiber, stacks_.stack(number), FiberStacks::usable_bytes(number), run_current_thread);
    warps[thread.warp].living |= std::uint64_t(1) << thread.lane;
    make_ready(thread.linear);
  }
}

void Worker::end_block() {
  if (!launch.abandoned) {
    for (const Warpgroup& warpgroup : warpgroups) warpgroup.report_unfinished(*this);
    if (options.check) memory_barriers.report_undelivered(*this);
  }
  if (options.statistics) requests.end_block();
}

// ---- scheduling -------------------------------------------------------------------------------------------

void Worker::make_ready(ThreadNumber thread) {
  threads[thread].state = ThreadState::ready;
  ready_.push(thread);
}

void Worker::block_current(const char* in, Site site) {
  shared_shadow.settle(*this);
  current->state = ThreadState::blocked;
  current->waits_in = in;
  current->waits_at = site;
  resume(next_thread());
}

void Worker::yield_current() {
  shared_shadow.settle(*this);
  current->state = ThreadState::ready;
  ready_.push_last(current->linear, options.schedule);
  resume(next_thread());
}

void Worker::return_current() {
  shared_shadow.settle(*this);
  current->state = ThreadState::returned;
  living--;
  warps[current->warp].living &= ~(std::uint64_t(1) << current->lane);
  current->copies.finish(*this);
  current->stores.finish(*this);
  barriers[0].thread_returned(*this);
  resume(next_thread());
  __builtin_unreachable();
}

void Worker::abandon_after_fault() {
  const bool overflow = stacks_.contains(fault_address);
  report(overflow ? "stack overflow" : "invalid address", {fault_site}, [&] {
    if (overflow) return text("%s has used up its stack at {0}", describe_current().c_str());
    return text("%s accesses address %p at {0}, where there is no memory", describe_current().c_str(), fault_address);
  });
  abandon();
}

void Worker::abandon() {
  launch.abandoned = true;
  switch_fiber(current->fiber, scheduler_fiber_);
  __builtin_unreachable();
}

// Copies are the adversary: late ones land only when no thread can go on without them. Null when the block is over,
// or stuck.
Thread* Worker::next_thread() {
  if (options.landing == TL_ENGINE_RANDOM && !tma.empty() && random.below(8) == 0) tma.land_any(*this);
  while (ready_.empty() && !tma.empty()) {
    if (options.schedule == TL_ENGINE_SHUFFLE) {
      tma.land_any(*this);
    } else {
      tma.land_oldest(*this);
    }
  }
  if (!ready_.empty()) return &threads[ready_.take(options.schedule, random)];
  if (living > 0) {
    report_deadlock();
    launch.abandoned = true;
  }
  return nullptr;
}

void Worker::resume(Thread* next) {
  switches++;
  if (next == current) return;
  Thread& suspended = *current;
  if (!next) {
    running = false;
    switch_fiber(suspended.fiber, scheduler_fiber_);
    return;
  }
  current = next;
  threadIdx = next->index;
  tl_engine_thread = next->linear;
  switch_fiber(suspended.fiber, next->fiber);
}

void Worker::report_deadlock() {
  struct Group {
    int count = 0, first = 0;
  };
  std::map<std::pair<std::string, Site>, Group> groups;
  int returned = 0;
  for (const Thread& thread : threads) {
    returned += thread.state == ThreadState::returned;
    if (thread.state != ThreadState::blocked) continue;
    Group& group = groups[{thread.waits_in, thread.waits_at}];
    if (group.count++ == 0) group.first = thread.linear;
  }
  std::string message = text("block %u: no thread can go on; %d returned", block_number, returned);
  std::vector<Site> sites;
  for (const auto& [place, group] : groups) {
    message += text("; %d wait in %s at {%zu}, the first of them %s", group.count, place.first.c_str(), sites.size(),
                    describe(ThreadNumber(group.first)).c_str());
    sites.push_back(place.second);
  }
  launch.findings.add_with_sites("deadlock", std::move(message), std::move(sites));
}

// ---- checking ---------------------------------------------------------------------------------------------

void Worker::access(const void* address, std::uint32_t bytes, bool is_write, Site site, bool is_atomic, bool blind) {
  const std::size_t offset = shared_offset(address);
  if (offset < arena_bytes) {
    if (options.check) {
      const ThreadNumber self = current->linear;
      const Clock* knows = clocks.row(self);
      SharedAccess shared_access{self, knows, knows[self], site};
      if (is_write) {
        const int flags = granule_initialised | granule_generic_proxy | (is_atomic ? granule_atomic : 0);
        shared_access.follows = !is_atomic;
        shared_shadow.write(*this, std::uint32_t(offset), bytes, shared_access, std::uint16_t(flags));
      } else {
        shared_access.is_atomic = is_atomic;
        shared_shadow.read(*this, std::uint32_t(offset), bytes, shared_access);
      }
    }
    if (options.statistics) requests.lane_access(*this, site, offset, bytes, is_write, true);
    return;
  }
  auto& memory = GlobalMemory::instance();
  if (!memory.contains(address)) return;
  if (options.check) memory.check(*this, address, bytes, is_write, is_atomic, site, blind);
  if (options.statistics) requests.lane_access(*this, site, memory.offset_of(address), bytes, is_write, false);
}

bool Worker::has_fenced(const Granule& granule, const SharedAccess& access) const {
  if (granule.writer >= block_threads || threads[granule.writer].proxy_fence > granule.write_clock) return true;
  return access.fenced && access.fenced[granule.writer] >= granule.write_clock;
}

std::string Worker::describe(ThreadNumber thread) const {
  if (thread >= block_threads) return text("the copy engine (memory barrier %d)", thread - block_threads);
  return text("thread %d (warp %d, lane %d)", thread, threads[thread].warp, threads[thread].lane);
}

}  // namespace tile2cu::engine
