// Grid barriers: all blocks are resident, and execute one at a time.
// Each block has a worker on its own OS thread, but only one of them runs at a time, to the barrier or to its exit, in
// the order of block indices. Launches are therefore deterministic.
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
  static constexpr std::uint32_t most_blocks = 256;  // each has its own fiber stacks

  explicit GridBarrier(std::uint32_t blocks) : states_(blocks, State::ready) {}

  // Waits until the block may run for the first time.
  void begin(std::uint32_t block);
  // Waits for all other blocks. Does not return if one of them has exited.
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
