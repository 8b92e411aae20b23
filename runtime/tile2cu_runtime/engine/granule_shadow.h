// The shadow of a piece of memory: which threads of a block wrote and read each granule last, and in what state it is.
//
// FastTrack's idea (Flanagan and Freund, PLDI 2009): an access is compared with the last write and the reads since,
// each an epoch (thread, clock), by one component of the accessor's vector clock. Most granules have at most two
// concurrent readers; only those with more get a whole vector of clocks.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "basics.h"
#include "findings.h"
#include "vector_clocks.h"

namespace tile2cu::engine {

struct Worker;

// State of a granule.
enum GranuleFlags : std::uint16_t {
  granule_initialised = 1,
  granule_in_flight = 2,      // the destination of an asynchronous copy that nobody has waited for
  granule_generic_proxy = 4,  // last written by an ordinary store: the async proxy needs a fence to see it
  granule_mbarrier = 8,       // storage of a memory barrier
  granule_atomic = 16,        // last written by an atomic
};

struct Granule {
  Clock write_clock, read_clock, other_read_clock;
  ThreadNumber writer, reader, other_reader;
  std::uint16_t reader_clocks;  // 0, or an index into the pool of clock vectors, then that replaces both readers
  std::uint16_t flags;
  Site write_site, read_site;
};

// One access: by whom, with which knowledge, from where.
struct MemoryAccess {
  ThreadNumber thread;
  const Clock* knows;
  Clock clock;
  Site site;
  bool async_proxy = false;
  const Clock* fenced = nullptr;  // of the async proxy: what all who access knew at their last fence.proxy.async
  bool by_warpgroup = false;      // `thread` is the first of a warpgroup that accesses together
  bool is_atomic = false;         // of a read: it does not race with atomic writes, and no later one with it
  bool is_operand = false;        // of a read: of an MMA whose results show whether they depend on unwritten operands
  bool lands = false;             // of a read: a copy that began with this knowledge reads until now
  bool follows = false;           // of a write: the store itself is the very next thing that happens
};

// A write that nothing orders after another thread's, and what that had left: no race if the bytes stay the same.
struct Suspicion {
  std::uint32_t offset;
  std::uint32_t before;  // the granule's bytes
  ThreadNumber thread, writer;
  Site site, write_site;
};

class GranuleShadow {
 public:
  // Of the `bytes` at `memory`, whose granules all begin with `flags`.
  void reset(const char* memory, bool is_shared, std::size_t bytes, int clock_columns, std::uint16_t flags);

  // Offsets are those from `memory`.
  void read(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access);
  void write(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access,
             std::uint16_t flags);
  // The copy that `writer` started has landed: the bytes are data now, as if written at `clock`.
  void land(std::uint32_t offset, std::uint32_t bytes, ThreadNumber writer, Clock clock, std::uint16_t flags);
  // Judges the last store, which is done where anything else happens.
  void settle(Worker& worker) {
    if (TILE2CU_UNLIKELY(!suspicions_.empty())) report_changes(worker);
  }

  std::size_t bytes() const { return bytes_; }
  std::uint32_t granule_bytes() const { return 1u << shift_; }
  Granule& at(std::uint32_t offset) { return granules_[offset >> shift_]; }
  const Granule& at(std::uint32_t offset) const { return granules_[offset >> shift_]; }
  // A thread that may still be reading, or -1.
  int unordered_reader(const Granule& granule, const Clock* knows) const;

 private:
  void refine_for(std::uint32_t offset, std::uint32_t bytes) {
    while (TILE2CU_UNLIKELY((offset | bytes) & (granule_bytes() - 1))) refine();
  }
  void refine();
  void read_granule(Worker& worker, Granule& granule, std::uint32_t offset, const MemoryAccess& access);
  void write_granule(Worker& worker, Granule& granule, std::uint32_t offset, const MemoryAccess& access,
                     std::uint16_t flags);
  void record_read(Granule& granule, const MemoryAccess& access);
  void report_changes(Worker& worker);
  void report_write_write(Worker& worker, const Suspicion& suspicion);
  Whereabouts places(Site here, Site there, std::uint32_t offset) const;
  std::string name(std::uint32_t offset) const;
  std::uint32_t bytes_at(std::uint32_t offset) const;
  std::uint16_t take_reader_clocks();

  const char* memory_ = nullptr;
  bool is_shared_ = true;
  std::size_t bytes_ = 0;
  int columns_ = 0;
  int shift_ = 2;  // a granule is four bytes, until somebody accesses less
  std::vector<Granule> granules_;
  std::vector<Suspicion> suspicions_;
  std::vector<VectorClocks::Snapshot> reader_clocks_;
  std::vector<std::uint16_t> free_reader_clocks_;
};

}  // namespace tile2cu::engine
