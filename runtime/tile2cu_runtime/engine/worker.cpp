#include "worker.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

// CUDA's built-in variables. Kernels read them directly, so they are set at each switch of fibers.
#define TILE2CU_VARIABLE __thread __attribute__((tls_model("initial-exec")))
TILE2CU_VARIABLE uint3 threadIdx, blockIdx;
TILE2CU_VARIABLE dim3 blockDim, gridDim;
TILE2CU_VARIABLE int tl_engine_thread;

namespace tile2cu::engine {

TILE2CU_VARIABLE Worker* active_worker = nullptr;

namespace {

void run_current_thread() {
  Worker& worker = current_worker();
  worker.launch.request.run_thread(worker.launch.request.argument);
  worker.return_current();
}

uint3 unravel(std::uint64_t linear, const std::uint32_t (&extents)[3]) {
  const std::uint64_t rest = linear / extents[0];
  return {std::uint32_t(linear % extents[0]), std::uint32_t(rest % extents[1]), std::uint32_t(rest / extents[1])};
}

}  // namespace

Worker::Worker(LaunchState& launch_, int number)
    : launch(launch_),
      options(launch_.options),
      random(launch_.options.seed + 0x632BE59Bu * std::uint64_t(number)),
      blocks(std::size_t(launch_.blocks_per_cluster())),
      arena(Workspace::of_worker(number).arena()),
      stacks_(Workspace::of_worker(number).stacks()) {
  active_worker = this;
}

Worker::~Worker() { active_worker = nullptr; }

void Worker::run_blocks() {
  const auto& grid = launch.request.grid;
  const std::uint64_t clusters = std::uint64_t(grid[0]) * grid[1] * grid[2] / blocks.size();
  const std::uint64_t most = std::uint64_t(launch.most_clusters());
  const bool some = most > 0 && clusters > most;
  while (!launch.abandoned) {
    const std::uint64_t order = launch.next_cluster++;
    if (order >= (some ? most : clusters)) break;
    const std::uint64_t number = some ? order * (clusters - 1) / (most - 1) : order;  // as tl_engine_runs says
    if (launch.grid_barrier) launch.grid_barrier->begin(std::uint32_t(number));
    if (!launch.abandoned) run_cluster(number);
    block_number = std::uint32_t(number);  // used by the grid barrier; cooperative launches have no clusters
    if (launch.grid_barrier) launch.grid_barrier->end(*this);
  }
}

void Worker::run_cluster(std::uint64_t number) {
  begin_cluster(number);
  Thread* first = next_thread();
  current = first;
  show_to_kernel(*first);
  running = true;
  switch_fiber(scheduler_fiber_, first->fiber);
  running = false;
  end_cluster();
}

void Worker::show_to_kernel(const Thread& thread) {
  threadIdx = thread.index;
  blockIdx = blocks[thread.block].index;
  tl_engine_thread = thread.in_block;
}

void Worker::begin_cluster(std::uint64_t number) {
  const auto& request = launch.request;
  blockDim = dim3(request.block[0], request.block[1], request.block[2]);
  gridDim = dim3(request.grid[0], request.grid[1], request.grid[2]);
  block_threads = int(request.block[0] * request.block[1] * request.block[2]);
  const int warpgroup_count = (block_threads + threads_per_warpgroup - 1) / threads_per_warpgroup;
  const int count = int(blocks.size());
  thread_slots = count == 1 ? block_threads : count * warpgroup_count * threads_per_warpgroup;
  const int warp_count = (thread_slots + request.warp_size - 1) / request.warp_size;

  warps.assign(warp_count, {});
  warpgroups.assign(count * warpgroup_count, {});
  cluster_barrier.reset();
  memory_barriers.reset();
  tma.reset();
  global_store_ = {};
  told.clear();
  if (options.check) clocks.reset(thread_slots);
  if (options.check) global_shadow.reset(clocks.columns());
  for (int rank = 0; rank < count; ++rank) begin_block(number, rank);
  block_number = blocks.front().number;
  if (options.statistics) requests.begin_block(warp_count, request.warp_size, options.banks);
  start_threads();
}

// The block with this rank; ranks are x fastest.
// [PTX ISA, Special Registers: %cluster_ctarank]
void Worker::begin_block(std::uint64_t cluster, int rank) {
  const auto& request = launch.request;
  const auto& extents = launch.cluster;
  const std::uint32_t clusters[] = {request.grid[0] / extents[0], request.grid[1] / extents[1],
                                    request.grid[2] / extents[2]};
  const uint3 at = unravel(cluster, clusters), within = unravel(std::uint64_t(rank), extents);
  Block& block = blocks[rank];
  block.index = {at.x * extents[0] + within.x, at.y * extents[1] + within.y, at.z * extents[2] + within.z};
  block.number = (block.index.z * request.grid[1] + block.index.y) * request.grid[0] + block.index.x;
  block.living = block_threads;
  ComputedTiles::instance().block_runs({block.index.x, block.index.y, block.index.z});
  for (BlockBarrier& barrier : block.barriers) barrier.reset();
  auto* const memory = reinterpret_cast<std::uint16_t*>(arena + rank * arena_bytes);
  std::fill_n(memory, (request.shared_bytes + 1) / 2, std::uint16_t(TL_ENGINE_UNWRITTEN_SHARED));
  if (options.check) block.shared_shadow.reset(arena, rank * arena_bytes, request.shared_bytes, clocks.columns());
}

void Worker::start_threads() {
  stacks_.reserve(thread_slots);
  threads.resize(thread_slots);
  ready_.clear();
  const int slots_per_block = thread_slots / int(blocks.size());
  for (int number = 0; number < thread_slots; ++number) {
    Thread& thread = threads[number];
    thread.linear = ThreadNumber(number);
    thread.block = std::uint16_t(number / slots_per_block);
    thread.in_block = std::uint16_t(number % slots_per_block);
    thread.state = ThreadState::returned;
    thread.cluster_arrival = ClusterArrival::none;
    if (thread.in_block >= block_threads) continue;  // an unused slot
    thread.index = unravel(thread.in_block, launch.request.block);
    thread.warp = std::uint16_t(number / launch.request.warp_size);
    thread.lane = std::uint16_t(number % launch.request.warp_size);
    thread.copies = {};
    thread.stores = {};
    thread.proxy_fence = 0;
    thread.knew_at_fence.clear();
    thread.has_fenced_memory = thread.reads_operands = false;
    thread.words.clear();
    prepare_fiber(thread.fiber, stacks_.stack(number), FiberStacks::usable_bytes(number), run_current_thread);
    warps[thread.warp].living |= std::uint64_t(1) << thread.lane;
    make_ready(thread.linear);
  }
}

void Worker::end_cluster() {
  if (!launch.abandoned) {
    for (const Warpgroup& warpgroup : warpgroups) warpgroup.report_unfinished(*this);
    if (options.check) memory_barriers.report_undelivered(*this);
  }
  if (options.statistics) requests.end_block();
}

int Worker::living() const {
  int sum = 0;
  for (const Block& each : blocks) sum += each.living;
  return sum;
}

// ---- scheduling -------------------------------------------------------------------------------------------

void Worker::make_ready(ThreadNumber thread) {
  threads[thread].state = ThreadState::ready;
  ready_.push(thread);
}

void Worker::block_current(const char* in, Site site) {
  settle();
  current->state = ThreadState::blocked;
  current->waits_in = in;
  current->waits_at = site;
  resume(next_thread());
}

void Worker::yield_current() {
  settle();
  current->state = ThreadState::ready;
  ready_.push_last(current->linear, options.schedule);
  resume(next_thread());
}

void Worker::return_current() {
  settle();
  current->state = ThreadState::returned;
  block().living--;
  warps[current->warp].living &= ~(std::uint64_t(1) << current->lane);
  current->copies.finish(*this);
  current->stores.finish(*this);
  block().barriers[0].thread_returned(*this);
  cluster_barrier.thread_returned(*this);  // a block may be a cluster alone
  if (blocks.size() > 1 && options.check && block().living == 0) end_of(block());
  resume(next_thread());
  __builtin_unreachable();
}

// The block's shared memory may be reused from here on. Accesses that none of its threads has synchronised with may
// still happen.
void Worker::end_of(Block& block) {
  VectorClocks::Snapshot known;
  for (const Thread& thread : threads) {
    if (&blocks[thread.block] == &block) clocks.release(thread.linear, known);
  }
  block.shared_shadow.end(*this, known);
  memory_barriers.end_of(*this, std::size_t(&block - blocks.data()), known);
}

void Worker::abandon_after_fault() {
  const bool division = fault_signal == SIGFPE, overflow = !division && stacks_.contains(fault_address);
  report(division   ? "integer division"
         : overflow ? "stack overflow"
                    : "invalid address",
         {fault_site}, [&] {
           if (division)  // x86 traps both; on a GPU the quotient is unspecified
             return text("%s divides by zero, or the smallest integer by -1, at {0}", describe_current().c_str());
           if (overflow) return text("%s has overflowed its stack at {0}", describe_current().c_str());
           return text("%s accesses the unmapped address %p at {0}", describe_current().c_str(), fault_address);
         });
  abandon();
}

void Worker::abandon() {
  launch.abandoned = true;
  switch_fiber(current->fiber, scheduler_fiber_);
  __builtin_unreachable();
}

// Copies complete as late as possible: only if no thread can run otherwise. Returns null if the block has finished or
// is deadlocked.
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
  if (living() > 0) {
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
  show_to_kernel(*next);
  switch_fiber(suspended.fiber, next->fiber);
}

void Worker::report_deadlock() {
  struct Group {
    int count = 0, first = 0;
  };
  std::map<std::pair<std::string, Site>, Group> groups;
  int returned = 0;
  for (const Thread& thread : threads) {
    returned += thread.state == ThreadState::returned && thread.in_block < block_threads;
    if (thread.state != ThreadState::blocked) continue;
    Group& group = groups[{thread.waits_in, thread.waits_at}];
    if (group.count++ == 0) group.first = thread.linear;
  }
  std::string message = blocks.size() == 1
                            ? text("block %u: no thread can make progress; %d exited", block_number, returned)
                            : text("blocks %u to %u of a cluster: no thread can make progress; %d exited", block_number,
                                   blocks.back().number, returned);
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
  const auto& memory = GlobalMemory::instance();
  const bool in_shared = is_shared(offset, 1);
  if (!in_shared && !memory.contains(address)) return;
  if (options.check) check_access(address, bytes, is_write, site, is_atomic, blind);
  if (!options.statistics) return;
  requests.lane_access(*this, site, in_shared ? offset : memory.offset_of(address), bytes, is_write, in_shared);
}

void Worker::check_access(const void* address, std::uint32_t bytes, bool is_write, Site site, bool is_atomic,
                          bool blind) {
  settle();
  MemoryAccess access = access_of_current(site);
  access.is_atomic = is_atomic && !is_write;
  access.follows = is_write && !is_atomic;
  const auto flags = std::uint16_t(granule_initialised | granule_generic_proxy | (is_atomic ? granule_atomic : 0));
  const std::size_t offset = shared_offset(address);
  if (is_shared(offset, 1)) {
    SharedShadow& shadow = shadow_at(offset);
    if (is_write) shadow.write(*this, std::uint32_t(offset), bytes, access, flags);
    if (!is_write) shadow.read(*this, std::uint32_t(offset), bytes, access);
    return;
  }
  GlobalMemory::instance().check(*this, address, bytes, is_write, is_atomic, site, blind);
  if (!is_write) return global_shadow.read(*this, address, bytes, access);
  global_shadow.write(*this, address, bytes, access, flags);
  global_store_ = {address, bytes, site};
}

MemoryAccess Worker::access_of_current(Site site) {
  if (!options.check) return {current->linear, nullptr, 0, site};
  const Clock* knows = clocks.row(current->linear);
  MemoryAccess access{current->linear, knows, knows[current->linear], site};
  access.is_operand = current->reads_operands;
  return access;
}

void Worker::note_flow(const Granule& granule, std::uint32_t offset, const MemoryAccess& access) {
  if (granule.write_site == flow_from_ && access.site == flow_to_) return;
  flow_from_ = granule.write_site, flow_to_ = access.site;
  const char* kind = access.is_operand ? "uninitialised MMA operand" : "uninitialised shared read";
  launch.flows.add(kind, {access.site, granule.write_site, offset}, [&] {
    return text("shared offset %u is read by %s at {0}; last written at {1}, of another tile that had this memory",
                offset, describe(access.thread).c_str());
  });
}

void Worker::fence_memory() {
  for (std::size_t word : current->words) launch.block_order.learn(word, told);
  current->words.clear();
  current->has_fenced_memory = true;
}

bool Worker::has_fenced(const Granule& granule, const MemoryAccess& access) const {
  if (granule.writer >= thread_slots || threads[granule.writer].proxy_fence > granule.write_clock) return true;
  return access.fenced && access.fenced[granule.writer] >= granule.write_clock;
}

std::string Worker::describe(ThreadNumber thread) const {
  if (thread >= thread_slots) return text("the async proxy (mbarrier %d)", thread - thread_slots);
  const Thread& who = threads[thread];
  const int warp = who.in_block / launch.request.warp_size;
  std::string name = text("thread %d (warp %d, lane %d)", who.in_block, warp, who.lane);
  return blocks.size() == 1 ? name : name + text(" of block %u", blocks[who.block].number);
}

}  // namespace tile2cu::engine
