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
  static constexpr int whole_block = -1;  // all threads that have not returned
  enum class Arrival { wait, go_on };

  void reset();
  void arrive(Worker& worker, int barrier, int threads, Arrival arrival, Site site);
  // Counts for the barrier that the current thread is about to join; `votes` are those of the last that completed.
  void vote(bool predicate) { votes_ += predicate; }
  int votes() const { return counted_; }
  // A thread returned: the others may have been waiting for it alone.
  void thread_returned(Worker& worker);

 private:
  void check_agreement(Worker& worker, int barrier, int threads, Site site) const;
  void complete(Worker& worker);

  int arrived_ = 0, expected_ = 0, votes_ = 0, counted_ = 0;
  std::vector<ThreadNumber> waiting_;
  VectorClocks::Snapshot released_;
  Site site_ = nullptr;  // of the first to arrive
};

}  // namespace tile2cu::engine
