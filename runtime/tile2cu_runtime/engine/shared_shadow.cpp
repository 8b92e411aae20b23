#include "shared_shadow.h"

#include <cstring>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr std::uint16_t most_reader_vectors = 65000;

// Which thread of the warpgroup that runs a wgmma had not yet seen the write.
std::string late_reader(Worker& worker, const Granule& granule, const SharedAccess& access) {
  if (!access.by_warpgroup) return worker.describe(access.thread);
  int late = access.thread;
  for (int thread = access.thread; thread < access.thread + threads_per_warpgroup; ++thread) {
    if (worker.clocks.row(thread)[granule.writer] < granule.write_clock) {
      late = thread;
      break;
    }
  }
  return text("wgmma of warpgroup %d, where %s is not synchronised,", access.thread / threads_per_warpgroup,
              worker.describe(ThreadNumber(late)).c_str());
}

}  // namespace

void SharedShadow::reset(std::size_t base, std::size_t shared_bytes, int clock_columns) {
  base_ = std::uint32_t(base);
  ended_ = false;
  bytes_ = shared_bytes;
  columns_ = clock_columns;
  granules_.assign(((shared_bytes + 1) >> shift_) + 16, Granule{});
  if (reader_clocks_.empty()) reader_clocks_.emplace_back();  // index 0 means none
  free_reader_clocks_.clear();
  suspicions_.clear();
  for (std::size_t index = 1; index < reader_clocks_.size(); ++index) {
    free_reader_clocks_.push_back(std::uint16_t(index));
  }
}

void SharedShadow::read(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const SharedAccess& access) {
  settle(worker);
  offset -= base_;
  if (!is_there(worker, offset, bytes, access.site, "read")) return;
  refine_for(offset, bytes);
  const std::uint32_t end = (offset + bytes - 1) >> shift_;
  for (std::uint32_t index = offset >> shift_; index <= end; ++index) {
    read_granule(worker, granules_[index], index << shift_, access);
  }
}

void SharedShadow::write(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const SharedAccess& access,
                         std::uint16_t flags) {
  settle(worker);
  offset -= base_;
  if (!is_there(worker, offset, bytes, access.site, "write")) return;
  refine_for(offset, bytes);
  const std::uint32_t end = (offset + bytes - 1) >> shift_;
  for (std::uint32_t index = offset >> shift_; index <= end; ++index) {
    write_granule(worker, granules_[index], index << shift_, access, flags);
  }
}

void SharedShadow::land(std::uint32_t offset, std::uint32_t bytes, ThreadNumber writer, Clock clock,
                        std::uint16_t flags) {
  offset -= base_;
  if (std::size_t(offset) + bytes > bytes_) return;
  for (std::uint32_t index = offset >> shift_; index < (offset + bytes) >> shift_; ++index) {
    Granule& granule = granules_[index];
    if (granule.writer != writer) continue;  // overwritten meanwhile: reported then
    granule.flags = flags;
    granule.write_clock = clock;
  }
}

void SharedShadow::mark_mbarrier(std::uint32_t offset) {
  offset -= base_;
  if (std::size_t(offset) + 8 > bytes_) return;
  for (std::uint32_t index = offset >> shift_; index < (offset + 8) >> shift_; ++index) {
    granules_[index].flags |= granule_mbarrier;
  }
}

bool SharedShadow::is_there(Worker& worker, std::uint32_t offset, std::uint32_t bytes, Site site,
                            const char* what) const {
  if (TILE2CU_UNLIKELY(ended_)) {
    worker.report("shared memory of an ended block", {site, nullptr, offset}, [&] {
      return text("%s at shared offset %u of block %u by %s at {0}; that block has ended", what, offset,
                  worker.blocks[base_ / Worker::arena_bytes].number, worker.describe_current().c_str());
    });
    return false;
  }
  if (std::size_t(offset) + bytes <= bytes_) return true;
  worker.report("shared out-of-bounds", {site, nullptr, offset}, [&] {
    return text("%s of %u bytes at shared offset %u by %s at {0}; the block has %zu bytes", what, bytes, offset,
                worker.describe_current().c_str(), bytes_);
  });
  return false;
}

// Bytes of a two-byte granule that belong to different threads are no race: from the first odd access on, granules are
// single bytes. Rare (8-bit tiles written one element at a time), so the common case keeps half the work.
void SharedShadow::refine_for(std::uint32_t offset, std::uint32_t bytes) {
  if (shift_ == 0 || !((offset | bytes) & 1)) return;
  std::vector<Granule> finer(granules_.size() * 2);
  for (std::size_t index = 0; index < granules_.size(); ++index) {
    finer[2 * index] = finer[2 * index + 1] = granules_[index];
    if (!granules_[index].reader_clocks) continue;
    const std::uint16_t copy = take_reader_clocks();
    reader_clocks_[copy] = reader_clocks_[granules_[index].reader_clocks];
    finer[2 * index + 1].reader_clocks = copy;
  }
  granules_ = std::move(finer);
  shift_ = 0;
}

void SharedShadow::read_granule(Worker& worker, Granule& granule, std::uint32_t offset, const SharedAccess& access) {
  const auto reader = [&] { return late_reader(worker, granule, access); };
  const auto writer = [&] { return worker.describe(granule.writer); };
  if (TILE2CU_UNLIKELY(!(granule.flags & (granule_initialised | granule_in_flight)))) {
    worker.report("uninitialised shared read", {access.site, nullptr, offset}, [&] {
      return text("shared offset %u is read by %s at {0} and was never written", offset, reader().c_str());
    });
  }
  if (TILE2CU_UNLIKELY(granule.flags & granule_in_flight)) {
    worker.report("read of in-flight async copy", {access.site, granule.write_site, offset}, [&] {
      return text("shared offset %u is read by %s at {0} while the copy that %s issued at {1} is not waited for",
                  offset, reader().c_str(), writer().c_str());
    });
  } else if (TILE2CU_UNLIKELY(granule.flags & granule_mbarrier)) {
    worker.report("plain access to mbarrier", {access.site, nullptr, offset}, [&] {
      return text("shared offset %u is a memory barrier and is read by %s at {0}", offset, reader().c_str());
    });
  } else if (access.is_atomic && granule.flags & granule_atomic) {
    // Atomics do not race with one another.
  } else if (TILE2CU_UNLIKELY(granule.write_clock > access.knows[granule.writer])) {
    worker.report("race: write -> read", {access.site, granule.write_site, offset}, [&] {
      return text("shared offset %u is read by %s at {0}; last written by %s at {1}; no barrier between them", offset,
                  reader().c_str(), writer().c_str());
    });
  } else if (access.async_proxy && (granule.flags & granule_generic_proxy) && !worker.has_fenced(granule, access)) {
    worker.report("missing fence.proxy.async", {access.site, granule.write_site, offset}, [&] {
      return text("shared offset %u, stored by %s at {1}, is read by the async proxy at {0} without a proxy fence",
                  offset, writer().c_str());
    });
  }
  if (!access.is_atomic) record_read(granule, access);
}

void SharedShadow::record_read(Granule& granule, const SharedAccess& access) {
  granule.read_site = access.site;
  if (granule.reader_clocks) {
    reader_clocks_[granule.reader_clocks][access.thread] = access.clock;
    return;
  }
  const auto replaceable = [&](Clock clock, ThreadNumber reader) {
    return clock == 0 || reader == access.thread || clock <= access.knows[reader];
  };
  if (replaceable(granule.read_clock, granule.reader)) {
    granule.reader = access.thread;
    granule.read_clock = access.clock;
  } else if (replaceable(granule.other_read_clock, granule.other_reader)) {
    granule.other_reader = access.thread;
    granule.other_read_clock = access.clock;
  } else if (const std::uint16_t index = take_reader_clocks()) {
    auto& clocks = reader_clocks_[index];
    clocks.assign(columns_, 0);
    clocks[granule.reader] = granule.read_clock;
    clocks[granule.other_reader] = granule.other_read_clock;
    clocks[access.thread] = access.clock;
    granule.reader_clocks = index;
  }
}

// Zero when there are none left; the granule then forgets its third reader.
std::uint16_t SharedShadow::take_reader_clocks() {
  if (free_reader_clocks_.empty()) {
    if (reader_clocks_.size() >= most_reader_vectors) return 0;
    reader_clocks_.emplace_back();
    return std::uint16_t(reader_clocks_.size() - 1);
  }
  const std::uint16_t index = free_reader_clocks_.back();
  free_reader_clocks_.pop_back();
  return index;
}

// A thread that may still be reading, or -1.
int SharedShadow::unordered_reader(const Granule& granule, const Clock* knows) const {
  if (granule.reader_clocks) {
    const auto& clocks = reader_clocks_[granule.reader_clocks];
    for (int thread = 0; thread < columns_; ++thread) {
      if (clocks[thread] > knows[thread]) return thread;
    }
    return -1;
  }
  if (granule.read_clock > knows[granule.reader]) return granule.reader;
  if (granule.other_read_clock > knows[granule.other_reader]) return granule.other_reader;
  return -1;
}

// The bytes of a granule, one or two.
std::uint16_t SharedShadow::bytes_at(const Worker& worker, std::uint32_t offset) const {
  std::uint16_t bytes = 0;
  std::memcpy(&bytes, worker.arena + base_ + offset, std::size_t(1) << shift_);
  return bytes;
}

// Suspicious writes that changed something are races.
void SharedShadow::report_changes(Worker& worker) {
  for (const Suspicion& suspicion : suspicions_) {
    if (bytes_at(worker, suspicion.offset) != suspicion.before) report_write_write(worker, suspicion);
  }
  suspicions_.clear();
}

void SharedShadow::end(Worker& worker, const VectorClocks::Snapshot& known) {
  settle(worker);
  for (std::size_t index = 0; index < bytes_ >> shift_; ++index) {
    const Granule& granule = granules_[index];
    const auto offset = std::uint32_t(index << shift_);
    if (granule.flags & granule_in_flight || granule.write_clock > known[granule.writer]) {
      report_end(worker, offset, granule.writer, granule.write_site, "written");
    }
    const int reader = unordered_reader(granule, known.data());
    if (reader >= 0) report_end(worker, offset, ThreadNumber(reader), granule.read_site, "read");
  }
  ended_ = true;
}

void SharedShadow::report_end(Worker& worker, std::uint32_t offset, ThreadNumber who, Site site,
                              const char* what) const {
  worker.report("shared memory of an ended block", {site, nullptr, offset}, [&] {
    return text("shared offset %u of block %u is %s by %s at {0}, and that block may have ended by then", offset,
                worker.blocks[base_ / Worker::arena_bytes].number, what, worker.describe(who).c_str());
  });
}

void SharedShadow::report_write_write(Worker& worker, const Suspicion& suspicion) {
  worker.report("race: write -> write", {suspicion.site, suspicion.write_site, suspicion.offset}, [&] {
    return text("shared offset %u is written by %s at {0}; previously by %s at {1}; no barrier between them",
                suspicion.offset, worker.describe(suspicion.thread).c_str(), worker.describe(suspicion.writer).c_str());
  });
}

void SharedShadow::write_granule(Worker& worker, Granule& granule, std::uint32_t offset, const SharedAccess& access,
                                 std::uint16_t flags) {
  const auto self = [&] { return worker.describe(access.thread); };
  const auto writer = [&] { return worker.describe(granule.writer); };
  if (TILE2CU_UNLIKELY(granule.flags & granule_in_flight)) {
    worker.report("write over in-flight async copy", {access.site, granule.write_site, offset}, [&] {
      return text("shared offset %u is written by %s at {0} while the copy that %s issued at {1} is not waited for",
                  offset, self().c_str(), writer().c_str());
    });
  } else if (TILE2CU_UNLIKELY(granule.flags & granule_mbarrier)) {
    worker.report("plain access to mbarrier", {access.site, granule.write_site, offset}, [&] {
      return text("shared offset %u is a memory barrier, initialised at {1}, and is written by %s at {0}", offset,
                  self().c_str());
    });
  } else if (granule.flags & flags & granule_atomic) {
    // Atomics do not race with one another.
  } else if (granule.write_clock > access.knows[granule.writer]) {
    const std::uint16_t before = bytes_at(worker, offset);
    const Suspicion suspicion{offset, before, access.thread, granule.writer, access.site, granule.write_site};
    if (access.follows) {
      suspicions_.push_back(suspicion);
    } else {
      report_write_write(worker, suspicion);
    }
  }
  const int reader = unordered_reader(granule, access.knows);
  if (TILE2CU_UNLIKELY(reader >= 0)) {
    worker.report("race: read -> write", {access.site, granule.read_site, offset}, [&] {
      return text(
          "shared offset %u is overwritten by %s at {0} while %s may still read it at {1}; no barrier "
          "between them",
          offset, self().c_str(), worker.describe(ThreadNumber(reader)).c_str());
    });
  }
  if (granule.reader_clocks) free_reader_clocks_.push_back(granule.reader_clocks);
  granule = Granule{access.clock, 0, 0, access.thread, 0, 0, 0, flags, access.site, nullptr};
}

}  // namespace tile2cu::engine
