// The shadow of the tensors that a launch writes, as a block (or a cluster) accesses them: races between its threads.
// Those between blocks are seen by GlobalMemory.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "granule_shadow.h"

namespace tile2cu::engine {

class GlobalShadow {
 public:
  // Forgets everything: another block begins.
  void reset(int clock_columns);

  // Memory that nothing writes, and what is not in the device heap, is left out.
  void read(Worker& worker, const void* address, std::uint32_t bytes, const MemoryAccess& access);
  void write(Worker& worker, const void* address, std::uint32_t bytes, const MemoryAccess& access, std::uint16_t flags);
  // The copy that `writer` started is complete.
  void land(const void* address, std::uint32_t bytes, ThreadNumber writer, Clock clock);
  // Judges the last store, which is done where anything else happens.
  void settle(Worker& worker) {
    for (GranuleShadow* page : stored_) page->settle(worker);
    stored_.clear();
  }

 private:
  static constexpr std::size_t page_bytes = 256;
  template <class Visit> void for_each_page(const void* address, std::uint32_t bytes, Visit&& visit);
  GranuleShadow& page(std::size_t number);

  int columns_ = 0;
  std::unordered_map<std::size_t, GranuleShadow*> pages_;  // by their number in the heap
  std::deque<GranuleShadow> pool_;                         // the first `pages_.size()` are in use
  std::size_t last_number_ = ~std::size_t(0);
  GranuleShadow* last_ = nullptr;
  std::vector<GranuleShadow*> stored_;
};

}  // namespace tile2cu::engine
