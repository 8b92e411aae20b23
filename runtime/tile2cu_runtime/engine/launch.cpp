// Launches, options and device memory: the functions that are called outside kernels.
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "crash_guard.h"
#include "report.h"
#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr tl_engine_options default_options{0, 0, TL_ENGINE_ROUND_ROBIN, TL_ENGINE_LATE, 0.0, 0, 1, 0, {0, 0}, 0};
constexpr std::size_t most_shared_bytes = std::size_t(227) << 10;

std::mutex options_mutex;
tl_engine_options options = default_options;
std::mutex launch_mutex;  // serialises the launches of the process

// The report of the calling thread's launches. Reading it closes it: the next launch starts a new one.
struct ThreadReport {
  Report report;
  std::string json;
  bool was_read = false;
};
ThreadReport& own_report() {
  static thread_local ThreadReport report;
  return report;
}

void pin_to_core(int number) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(unsigned(number) % cores, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

// Totals over a launch's workers.
struct Totals {
  std::mutex mutex;
  Report& report;
  void add(const Worker& worker) {
    const std::lock_guard<std::mutex> lock(mutex);
    report.add(worker.requests.counts());
    report.add_switches(worker.switches, worker.collectives);
  }
};

std::uint64_t blocks_of(const tl_engine_launch_request& request) {
  return std::uint64_t(request.grid[0]) * request.grid[1] * request.grid[2];
}

void run_worker(LaunchState& launch, int number, Totals& totals) {
  auto worker = std::make_unique<Worker>(launch, number);
  worker->run_blocks();
  totals.add(*worker);
}

void run_workers(LaunchState& launch, Totals& totals) {
  const std::uint64_t blocks = blocks_of(launch.request) / std::uint64_t(launch.blocks_per_cluster());
  const int wanted = launch.request.together ? int(GridBarrier::most_blocks) : std::max(1, launch.options.workers);
  const int workers = int(std::min<std::uint64_t>(wanted, blocks));
  if (launch.request.together) launch.grid_barrier.emplace(std::uint32_t(blocks));
  if (workers <= 1) return run_worker(launch, 0, totals);
  std::vector<std::thread> threads;
  for (int number = 0; number < workers; ++number) {
    threads.emplace_back([&, number] {
      pin_to_core(number);  // some OS schedulers keep them on one core otherwise
      run_worker(launch, number, totals);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string refusal_of_clusters(const LaunchState& launch) {
  const auto& [x, y, z] = launch.cluster;
  const auto& grid = launch.request.grid;
  if (std::uint64_t(x) * y * z > max_blocks_per_cluster) {
    return text("a cluster of %u x %u x %u blocks; the maximum is %d blocks", x, y, z, max_blocks_per_cluster);
  }
  if (grid[0] % x || grid[1] % y || grid[2] % z) {
    return text("a grid of %u x %u x %u blocks is not divisible by clusters of %u x %u x %u", grid[0], grid[1], grid[2],
                x, y, z);
  }
  if (launch.request.together && launch.blocks_per_cluster() > 1)
    return "a cooperative launch with clusters is unsupported";
  return {};
}

// The reason why a launch is rejected, or empty.
std::string refusal(const LaunchState& launch) {
  const auto& request = launch.request;
  const std::uint64_t threads = std::uint64_t(request.block[0]) * request.block[1] * request.block[2];
  if (threads == 0 || threads > max_threads_per_block) {
    return text("a block has 1 to %d threads, not %llu", max_threads_per_block,
                static_cast<unsigned long long>(threads));
  }
  const std::uint64_t blocks = blocks_of(request);
  if (request.together && blocks > GridBarrier::most_blocks) {
    return text("a cooperative launch of %llu blocks; the engine supports %u", static_cast<unsigned long long>(blocks),
                GridBarrier::most_blocks);
  }
  if (request.warp_size != 32 && request.warp_size != 64)
    return text("the warp size %d is unsupported", request.warp_size);
  if (request.shared_bytes > most_shared_bytes) {
    return text("%zu bytes of shared memory; the maximum per block is %zu", request.shared_bytes, most_shared_bytes);
  }
  if ((launch.options.check || launch.options.statistics || launch.options.preempt > 0) && !request.instrumented) {
    return "the kernel was compiled without -fsanitize=thread: plain accesses are not observable";
  }
  if (active_worker) return "a kernel cannot launch a kernel";
  return refusal_of_clusters(launch);
}

int run_launch(LaunchState& launch, Report& report) {
  const std::string reason = refusal(launch);
  if (!reason.empty()) {
    launch.findings.add_with_sites("launch rejected", reason, {});
  } else {
    if (launch.options.check) GlobalMemory::instance().begin_launch();
    ComputedTiles::instance().begin_launch(launch.most_clusters() > 0);
    Totals totals{{}, report};
    const CrashHandlers handlers;
    run_workers(launch, totals);
  }
  report.add(launch.findings.take(), launch.warnings.take(), launch.flows.take());
  return !reason.empty() || launch.abandoned;
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_set_options(const tl_engine_options* chosen) {
  const std::lock_guard<std::mutex> lock(options_mutex);
  options = chosen ? *chosen : default_options;
}

void tl_engine_get_options(tl_engine_options* current) {
  const std::lock_guard<std::mutex> lock(options_mutex);
  *current = options;
}

int tl_engine_launch(const tl_engine_launch_request* request) {
  ThreadReport& own = own_report();
  if (own.was_read) own = {};
  auto launch = std::make_unique<LaunchState>();
  launch->request = *request;
  for (int d = 0; d < 3; ++d) launch->cluster[d] = std::max(1u, request->cluster[d]);
  tl_engine_get_options(&launch->options);
  const std::lock_guard<std::mutex> lock(launch_mutex);
  return run_launch(*launch, own.report);
}

const char* tl_engine_report_json() {
  ThreadReport& own = own_report();
  own.json = own.report.json();
  own.was_read = true;
  return own.json.c_str();
}

void tl_engine_drop_report() { own_report() = {}; }

void* tl_engine_alloc(std::size_t bytes, int initialised) {
  return GlobalMemory::instance().allocate(bytes, initialised != 0);
}

void tl_engine_set_read_only(void* memory) { GlobalMemory::instance().set_read_only(memory); }

void tl_engine_free(void* memory) { GlobalMemory::instance().release(memory); }

}  // extern "C"
