// Barriers of the grid: blocks that are all there at once, and run in turns.
//
// Each block has a worker, an OS thread of its own, but one of them runs at a time: up to the barrier, or to its end, in
// the order of the blocks' numbers. So a launch goes the same way each time.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

struct Worker;

class GridBarrier {
 public:
  static constexpr std::uint32_t most_blocks = 256;  // each has its fibers' stacks

  explicit GridBarrier(std::uint32_t blocks) : states_(blocks, State::ready) {}

  // Waits for the block's first turn.
  void begin(std::uint32_t block);
  // The block's running thread waits for all other blocks. Does not return where they will not come.
  void arrive(Worker& worker, Site site);
  void end(Worker& worker);

 private:
  enum class State : std::uint8_t { ready, arrived, ended };

  void pass_on(Worker& worker);
  void release_all(Worker& worker);
  void wait_for_turn(std::unique_lock<std::mutex>& lock, std::uint32_t block);

  std::mutex mutex_;
  std::condition_variable turns_;
  std::vector<State> states_;
  std::uint32_t turn_ = 0;
  bool given_up_ = false;
  Site site_ = nullptr;  // of the last arrival
};

}  // namespace tile2cu::engine
