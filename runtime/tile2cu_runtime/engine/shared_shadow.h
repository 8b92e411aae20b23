// The shadow of a block's shared memory.
#pragma once
#include <cstdint>

#include "granule_shadow.h"

namespace tile2cu::engine {

class SharedShadow {
 public:
  // Of the block whose shared memory begins at `base` of the cluster's, which is at `arena`. Offsets are those in the
  // cluster's, of which a message gives those in the block's.
  void reset(const char* arena, std::size_t base, std::size_t shared_bytes, int clock_columns);

  void read(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access);
  void write(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access,
             std::uint16_t flags);
  void land(std::uint32_t offset, std::uint32_t bytes, ThreadNumber writer, Clock clock, std::uint16_t flags);
  void mark_mbarrier(std::uint32_t offset);
  void settle(Worker& worker) { granules_.settle(worker); }
  const Granule& at(std::uint32_t offset) const { return granules_.at(offset - base_); }
  // The block has ended, and all its threads together know this: nothing else may come now, or still be under way.
  void end(Worker& worker, const VectorClocks::Snapshot& known);

 private:
  bool is_there(Worker& worker, std::uint32_t offset, std::uint32_t bytes, Site site, const char* what) const;
  void report_end(Worker& worker, std::uint32_t offset, ThreadNumber who, Site site, const char* what) const;

  std::uint32_t base_ = 0;
  bool ended_ = false;
  GranuleShadow granules_;
};

}  // namespace tile2cu::engine
