// The engine of one OS thread: executes the blocks of a launch one after another, each GPU thread as a fiber. The
// blocks of a cluster run concurrently, as if they were one block; a Block has the state of each.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "basics.h"
#include "block_barrier.h"
#include "block_order.h"
#include "cluster_barrier.h"
#include "computed_tiles.h"
#include "cp_async.h"
#include "crash_guard.h"
#include "fiber.h"
#include "findings.h"
#include "global_memory.h"
#include "global_shadow.h"
#include "grid_barrier.h"
#include "mbarrier.h"
#include "requests.h"
#include "scheduler.h"
#include "shared_shadow.h"
#include "tma.h"
#include "vector_clocks.h"
#include "warp_collective.h"
#include "wgmma.h"
#include "workspace.h"

namespace tile2cu::engine {

enum class ThreadState : std::uint8_t { ready, blocked, returned };
// A thread's state between its arrival at the cluster barrier and its wait.
enum class ClusterArrival : std::uint8_t { none, pending, complete };

// A GPU thread.
struct Thread {
  Fiber fiber;
  uint3 index{};
  ThreadNumber linear = 0;
  std::uint16_t block = 0, in_block = 0;  // rank of its block in the cluster, index in the block
  std::uint16_t warp = 0, lane = 0;       // warp index in the cluster
  ThreadState state = ThreadState::ready;
  ClusterArrival cluster_arrival = ClusterArrival::none;
  const char* waits_in = "";
  Site waits_at = nullptr;
  CopyQueue copies;
  StoreQueue stores;
  Clock proxy_fence = 0;                 // own clock at its last fence.proxy.async
  VectorClocks::Snapshot knew_at_fence;  // what it knew then; empty without one
  bool has_fenced_memory = false;        // for other blocks
  bool reads_operands = false;           // tl_engine_operand_reads
  std::vector<std::size_t> words;        // that it accessed atomically since, and where blocks have told something
};

// The state of each block of a cluster; without clusters there is one.
struct Block {
  std::uint32_t number = 0;
  uint3 index{};
  int living = 0;
  std::array<BlockBarrier, 16> barriers;
  SharedShadow shared_shadow;
};

// The state that all workers of a launch share.
struct LaunchState {
  tl_engine_launch_request request;
  tl_engine_options options;
  Findings findings, warnings, flows;
  std::uint32_t cluster[3] = {1, 1, 1};
  int blocks_per_cluster() const { return int(cluster[0] * cluster[1] * cluster[2]); }
  // How many clusters run if not all blocks do; 0 for all. A cooperative launch runs all.
  std::int32_t most_clusters() const {
    const bool some = options.most_blocks > 0 && !request.together;
    return some ? std::max(2, options.most_blocks / blocks_per_cluster()) : 0;
  }
  std::atomic<std::uint64_t> next_cluster{0};
  std::atomic<bool> abandoned{false};
  std::optional<GridBarrier> grid_barrier;  // of a cooperative launch
  BlockOrder block_order;
};

struct Worker {
  Worker(LaunchState& launch, int number);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Executes blocks, or clusters, until none are left or the launch is aborted.
  void run_blocks();

  // ---- scheduling: called on a fiber of the block
  void make_ready(ThreadNumber thread);
  void block_current(const char* in, Site site);
  void yield_current();
  [[noreturn]] void return_current();
  // After a memory fault of the current thread: reports it and aborts the launch.
  [[noreturn]] void abandon_after_fault();
  // Aborts the launch; does not return to the running thread.
  [[noreturn]] void abandon();

  // ---- addresses
  static constexpr std::size_t arena_bytes = Workspace::arena_bytes;
  static constexpr std::uint32_t shared_window_base = 1024;  // CUDA reserves the first KiB of a block
  // Offset in the cluster's shared memory, in which blocks are arena_bytes apart.
  std::size_t shared_offset(const void* address) const {
    return std::size_t(static_cast<const char*>(address) - arena);
  }
  bool is_shared(const void* address, std::uint32_t bytes = 1) const {
    return is_shared(shared_offset(address), bytes);
  }
  bool is_shared(std::size_t offset, std::uint32_t bytes) const {
    const std::size_t end = blocks.size() * arena_bytes;
    return offset < end && offset + bytes <= end;
  }
  // Offset in the shared memory of the current thread's block.
  std::size_t own_offset(const void* address) const { return shared_offset(address) - own_memory(); }
  std::size_t own_memory() const { return current->block * arena_bytes; }
  // The shadow of the block that has this offset.
  SharedShadow& shadow_at(std::size_t offset) { return blocks[offset / arena_bytes].shared_shadow; }
  Block& block() { return blocks[current->block]; }

  // ---- checking
  template <class Message> void report(const char* kind, const Whereabouts& where, Message&& message) {
    launch.findings.add(kind, where, message);
  }
  // What is no fault as long as no result depends on it.
  template <class Message> void warn(const char* kind, const Whereabouts& where, Message&& message) {
    launch.warnings.add(kind, where, message);
  }
  // A read of what `access` finds written in memory that tiles of several lifetimes share.
  void note_flow(const Granule& granule, std::uint32_t offset, const MemoryAccess& access);
  // `blind`: an atomic that does not ask what was there.
  void access(const void* address, std::uint32_t bytes, bool is_write, Site site, bool is_atomic = false,
              bool blind = false);
  // That of the running thread, with what it knows now, if accesses are checked.
  MemoryAccess access_of_current(Site site);
  // A fence of the running thread for all memory, as seen from other blocks.
  void fence_memory();
  bool observes() const { return options.check | options.statistics; }
  // Whether who wrote it, or those who access it, have had a fence between.
  bool has_fenced(const Granule& granule, const MemoryAccess& access) const;
  // Judges the last stores, which are done where anything else happens.
  void settle() {
    for (Block& each : blocks) each.shared_shadow.settle(*this);
    global_shadow.settle(*this);
    settle_global_store();
  }
  std::string describe(ThreadNumber thread) const;
  std::string describe_current() const { return describe(current->linear); }

  // ---- the launch
  LaunchState& launch;
  const tl_engine_options options;
  Random random;

  // ---- the block, or the cluster
  std::uint32_t block_number = 0;  // index of the first block
  int block_threads = 0;
  int thread_slots = 0;  // slots of all blocks: each block starts at a whole warpgroup
  std::vector<Block> blocks;
  int living() const;
  char* const arena;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  ClusterBarrier cluster_barrier;
  MemoryBarriers memory_barriers;
  TmaQueue tma;
  Thread* current = nullptr;
  bool running = false;  // a fiber of the block is executing
  int fault_signal = 0;
  const void* fault_address = nullptr;
  Site fault_site = nullptr;
  CrashStacks crash_stacks;

  // ---- checker and statistics
  VectorClocks clocks;
  GlobalShadow global_shadow;
  BlockOrder::Blocks told;  // the blocks of which this one was told
  Requests requests;
  std::uint64_t switches = 0, collectives = 0;

 private:
  void check_access(const void* address, std::uint32_t bytes, bool is_write, Site site, bool is_atomic, bool blind);
  void run_cluster(std::uint64_t number);
  void begin_cluster(std::uint64_t number);
  void begin_block(std::uint64_t cluster, int rank);
  void end_cluster();
  void start_threads();
  void show_to_kernel(const Thread& thread);
  void end_of(Block& block);
  Thread* next_thread();
  void resume(Thread* next);
  void report_deadlock();
  void settle_global_store() {
    if (!global_store_.address) return;
    GlobalMemory::instance().check_stored(*this, global_store_.address, global_store_.bytes, global_store_.site);
    global_store_.address = nullptr;
  }

  struct GlobalStore {
    const void* address = nullptr;
    std::uint32_t bytes = 0;
    Site site = nullptr;
  };
  GlobalStore global_store_;
  Site flow_from_ = nullptr, flow_to_ = nullptr;  // the last one noted
  ReadyQueue ready_;
  FiberStacks& stacks_;
  Fiber scheduler_fiber_;
};

// The worker of the calling OS thread; null outside of launches.
extern __thread Worker* active_worker __attribute__((tls_model("initial-exec")));
inline Worker& current_worker() { return *active_worker; }

}  // namespace tile2cu::engine
