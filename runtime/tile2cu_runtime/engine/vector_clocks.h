// Vector clocks of the threads of a block or cluster.
// Row t is thread t's clock. Its own component increases at each release; an access of thread u at clock c happened
// before the present of t if row(t)[u] >= c. Components after the threads' belong to asynchronous agents (one per
// mbarrier), which have no row.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "basics.h"

namespace tile2cu::engine {

class VectorClocks {
 public:
  static constexpr int agents = 64;
  using Snapshot = std::vector<Clock>;  // empty: all zero

  void reset(int threads) {
    columns_ = (threads + agents + 15) & ~15;  // whole SIMD vectors: joins need no remainder loop
    rows_.assign(std::size_t(threads) * columns_, 0);
    for (int thread = 0; thread < threads; ++thread) row(thread)[thread] = 1;
  }
  int columns() const { return columns_; }
  Clock* row(int thread) { return &rows_[std::size_t(thread) * columns_]; }

  void tick(int thread) { row(thread)[thread]++; }
  // Joins the clock of `thread` into `into`, and advances the thread's own component.
  void release(int thread, Snapshot& into) {
    if (into.empty()) into.assign(columns_, 0);
    join(into.data(), row(thread));
    tick(thread);
  }
  void acquire(int thread, const Snapshot& from) {
    if (!from.empty()) join(row(thread), from.data());
  }
  // Joins the clocks of all `threads`.
  template <class Threads> void exchange(const Threads& threads) {
    Snapshot joint(columns_, 0);
    for (int thread : threads) join(joint.data(), row(thread));
    for (int thread : threads) {
      const Clock own = row(thread)[thread];
      std::memcpy(row(thread), joint.data(), sizeof(Clock) * columns_);
      row(thread)[thread] = own + 1;
    }
  }
  void join(Clock* into, const Clock* from) const {
    for (int column = 0; column < columns_; ++column) into[column] = std::max(into[column], from[column]);
  }
  // What both know.
  static void meet(Snapshot& common, const Clock* other) {
    Clock* const own = common.data();
    const int columns = int(common.size());
    for (int column = 0; column < columns; ++column) own[column] = std::min(own[column], other[column]);
  }

 private:
  int columns_ = 0;
  std::vector<Clock> rows_;
};

}  // namespace tile2cu::engine
