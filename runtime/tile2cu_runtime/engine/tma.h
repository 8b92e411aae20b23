// TMA copies of boxes of tensors with up to five dimensions. [PTX ISA, cp.async.bulk.tensor]
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "basics.h"
#include "vector_clocks.h"

namespace tile2cu::engine {

struct Worker;

constexpr int most_dimensions = 5;

// A box: the coordinates of its first element (innermost first), and its offset in shared memory.
struct Box {
  tl_engine_tensor_map map;
  std::uint32_t shared_offset;
  std::array<int, most_dimensions> at;
  std::uint32_t bytes() const {
    std::uint32_t product = std::uint32_t(map.element_bytes);
    for (int extent : map.box) product *= std::uint32_t(extent);
    return product;
  }
};

// The loads in flight in a block or cluster.
class TmaQueue {
 public:
  void reset() { loads_.clear(); }
  bool empty() const { return loads_.empty(); }
  void load(Worker& worker, const Box& box, const void* barrier, Site site);
  // Copies from the shared memory of the current thread's block to that of a block of the cluster, which has the
  // mbarrier.
  void copy(Worker& worker, void* to, const void* from, std::uint32_t bytes, const void* barrier, Site site);
  // Completes one load: the oldest, or any.
  void land_oldest(Worker& worker) { land(worker, 0); }
  void land_any(Worker& worker);

 private:
  struct Load {
    Box box;
    std::uint32_t barrier_offset;
    ThreadNumber agent;
    Clock agent_clock;
    VectorClocks::Snapshot knows;
    Site site;
  };
  void start(Worker& worker, const Box& box, const void* barrier, Site site);
  void land(Worker& worker, std::size_t index);
  std::vector<Load> loads_;
};

// Stores of one thread: shared memory must stay unchanged until their group has been read, and nobody may use the
// tensor's part before they are complete.
struct StoreQueue {
  struct Store {
    Box box;
    Site site;
    std::vector<Clock> knows;  // what the thread knew of the others when it issued it
    bool adds;                 // floats, to those that are there
    bool is_read = false;      // and written, which only a wait for completion shows
  };
  std::vector<Store> stores;
  std::vector<std::uint32_t> group_ends;

  void issue(Worker& worker, const Box& box, Site site, bool adds = false);
  void commit() { group_ends.push_back(std::uint32_t(stores.size())); }
  void wait_read(Worker& worker, int groups_left);
  void wait(Worker& worker, int groups_left);
  void finish(Worker& worker);

 private:
  int groups_awaited(int groups_left) const;
};

}  // namespace tile2cu::engine
