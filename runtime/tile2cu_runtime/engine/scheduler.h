// Selects the next thread of the block or cluster to run.
#pragma once
#include <array>
#include <cstdint>

#include "basics.h"

namespace tile2cu::engine {

// The runnable threads, in the order in which they became ready.
class ReadyQueue {
 public:
  void clear() { first_ = size_ = 0; }
  bool empty() const { return size_ == 0; }
  void push(ThreadNumber thread) { ring_[(first_ + size_++) % capacity] = thread; }
  // A yielding thread: it runs after all others.
  void push_last(ThreadNumber thread, int schedule) {
    if (schedule != TL_ENGINE_REVERSE) return push(thread);
    ++size_;
    ring_[--first_ % capacity] = thread;
  }
  // schedule: enum tl_engine_schedule.
  ThreadNumber take(int schedule, Random& random) {
    const std::uint32_t last = size_ - 1;
    const std::uint32_t chosen = schedule == TL_ENGINE_ROUND_ROBIN ? 0
                                 : schedule == TL_ENGINE_REVERSE   ? last
                                                                   : random.below(size_);
    const ThreadNumber thread = ring_[(first_ + chosen) % capacity];
    --size_;
    if (chosen == 0) {
      ++first_;
    } else {
      ring_[(first_ + chosen) % capacity] = ring_[(first_ + last) % capacity];
    }
    return thread;
  }

 private:
  static constexpr std::uint32_t capacity =
      2 * max_threads_per_block * max_blocks_per_cluster;  // a power of two, so that indices wrap by masking
  std::array<ThreadNumber, capacity> ring_;
  std::uint32_t first_ = 0, size_ = 0;
};

}  // namespace tile2cu::engine
