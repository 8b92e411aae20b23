// wgmma.mma_async m64nN: B in shared memory, A in shared memory or registers. [PTX ISA, wgmma.mma_async]
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

struct Worker;

using Words = std::vector<std::uint16_t>;  // an operand as rows of 32 bytes

struct WgmmaOperation : tl_engine_wgmma_operation {
  Site site;
  std::array<std::uint8_t*, threads_per_warpgroup> accumulators{};
  Words a_values{};  // 64 rows of a register operand
  std::array<const std::uint32_t*, threads_per_warpgroup> a_places{};
  bool executed = false;
};

// The accumulators of pending wgmmas: their values are stored here, and the registers hold a pattern that reveals
// accesses.
struct HeldAccumulators {
  std::array<std::uint8_t*, threads_per_warpgroup> registers;
  int n, pending;
  bool half;
  std::vector<float> values;  // row-major 64 x n; integers as bits
  Site site;

  int bytes() const { return half ? 2 : 4; }
  std::uint8_t* place(int thread, int i) const { return registers[thread] + i * bytes(); }
};

// A warpgroup and its pending operations. An operation executes when it is waited for, or when it is issued with
// TL_ENGINE_EARLY.
class Warpgroup {
 public:
  void fence() { fenced_ = true; }
  void issue(Worker& worker, const WgmmaOperation& operation, std::uint8_t* accumulators);
  void commit(Worker& worker, Site site);
  void wait(Worker& worker, int groups_left, Site site);
  void report_unfinished(Worker& worker) const;

 private:
  enum class Step { issue, commit, wait };
  bool last_to_arrive(Worker& worker, Step step, int detail, Site site);
  void release_others(Worker& worker);
  void start(Worker& worker, WgmmaOperation operation);
  void check_registers(Worker& worker, const WgmmaOperation& operation) const;
  void hold(const WgmmaOperation& operation);
  void execute(Worker& worker, WgmmaOperation& operation);
  void give_back(Worker& worker, HeldAccumulators& held);
  void check_operands(Worker& worker, const WgmmaOperation& operation) const;

  std::deque<WgmmaOperation> in_flight_;
  std::list<HeldAccumulators> held_;
  std::vector<std::size_t> groups_;  // operations in each committed group
  std::size_t uncommitted_ = 0;
  bool fenced_ = false;

  int arrived_ = 0, detail_ = 0;
  Step step_{};
  Site site_ = nullptr;
  std::uint64_t a_ = 0, b_ = 0;
  std::array<std::uint8_t*, threads_per_warpgroup> accumulators_{};
  std::array<const std::uint32_t*, threads_per_warpgroup> a_places_{};
  std::vector<ThreadNumber> waiting_;
};

}  // namespace tile2cu::engine
