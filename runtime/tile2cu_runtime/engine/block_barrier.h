// __syncthreads and the named barriers of a block.
#pragma once
#include <cstdint>
#include <vector>

#include "basics.h"
#include "vector_clocks.h"

namespace tile2cu::engine {

struct Worker;

class BlockBarrier {
 public:
  static constexpr int whole_block = -1;  // all threads that have not exited
  enum class Arrival { wait, go_on };

  void reset();
  void arrive(Worker& worker, int barrier, int threads, Arrival arrival, Site site);
  // Adds a predicate to the barrier in progress; votes(): the number of true ones of the last completed barrier.
  void vote(bool predicate) { votes_ += predicate; }
  int votes() const { return counted_; }
  // A thread has exited, which may complete the barrier.
  void thread_returned(Worker& worker);

 private:
  void check_agreement(Worker& worker, int barrier, int threads, Site site) const;
  void complete(Worker& worker);

  int arrived_ = 0, expected_ = 0, votes_ = 0, counted_ = 0;
  std::vector<ThreadNumber> waiting_;
  VectorClocks::Snapshot released_;
  Site site_ = nullptr;  // of the first arrival
};

}  // namespace tile2cu::engine
