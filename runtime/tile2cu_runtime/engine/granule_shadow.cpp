#include "granule_shadow.h"

#include <cstring>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr std::uint16_t most_reader_vectors = 65000;

// Which thread of the warpgroup that runs a wgmma had not yet seen the write.
std::string late_reader(Worker& worker, const Granule& granule, const MemoryAccess& access) {
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

void GranuleShadow::reset(const char* memory, bool is_shared, std::size_t bytes, int clock_columns,
                          std::uint16_t flags) {
  memory_ = memory;
  is_shared_ = is_shared;
  bytes_ = bytes;
  columns_ = clock_columns;
  Granule fresh{};
  fresh.flags = flags;
  granules_.assign((bytes >> shift_) + 16, fresh);
  if (reader_clocks_.empty()) reader_clocks_.emplace_back();  // index 0 means none
  free_reader_clocks_.clear();
  suspicions_.clear();
  for (std::size_t index = 1; index < reader_clocks_.size(); ++index) {
    free_reader_clocks_.push_back(std::uint16_t(index));
  }
}

void GranuleShadow::read(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access) {
  settle(worker);
  refine_for(offset, bytes);
  const std::uint32_t end = (offset + bytes - 1) >> shift_;
  for (std::uint32_t index = offset >> shift_; index <= end; ++index) {
    read_granule(worker, granules_[index], index << shift_, access);
  }
}

void GranuleShadow::write(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access,
                          std::uint16_t flags) {
  settle(worker);
  refine_for(offset, bytes);
  const std::uint32_t end = (offset + bytes - 1) >> shift_;
  for (std::uint32_t index = offset >> shift_; index <= end; ++index) {
    write_granule(worker, granules_[index], index << shift_, access, flags);
  }
}

void GranuleShadow::land(std::uint32_t offset, std::uint32_t bytes, ThreadNumber writer, Clock clock,
                         std::uint16_t flags) {
  if (std::size_t(offset) + bytes > bytes_) return;
  for (std::uint32_t index = offset >> shift_; index < (offset + bytes) >> shift_; ++index) {
    Granule& granule = granules_[index];
    if (granule.writer != writer) continue;  // overwritten meanwhile: reported then
    granule.flags = flags;
    granule.write_clock = clock;
  }
}

// Bytes of a granule that belong to different threads are no race: from the first access of less on, granules are half
// as large. Most kernels access four bytes or more at a time and keep a fraction of the work.
void GranuleShadow::refine() {
  std::vector<Granule> finer(granules_.size() * 2);
  for (std::size_t index = 0; index < granules_.size(); ++index) {
    finer[2 * index] = finer[2 * index + 1] = granules_[index];
    if (!granules_[index].reader_clocks) continue;
    const std::uint16_t copy = take_reader_clocks();
    reader_clocks_[copy] = reader_clocks_[granules_[index].reader_clocks];
    finer[2 * index + 1].reader_clocks = copy;
  }
  granules_ = std::move(finer);
  --shift_;
}

void GranuleShadow::read_granule(Worker& worker, Granule& granule, std::uint32_t offset, const MemoryAccess& access) {
  const auto reader = [&] { return late_reader(worker, granule, access); };
  const auto writer = [&] { return worker.describe(granule.writer); };
  const bool is_unwritten = !(granule.flags & (granule_initialised | granule_in_flight));
  if (TILE2CU_UNLIKELY(is_unwritten && access.is_operand)) {
    worker.warn("uninitialised MMA operand", places(access.site, nullptr, offset), [&] {
      return text(
          "%s is read by %s for the MMA at {0} and was never written; results that depend on it are reported "
          "where they are stored",
          name(offset).c_str(), reader().c_str());
    });
  } else if (TILE2CU_UNLIKELY(is_unwritten)) {
    worker.report("uninitialised shared read", places(access.site, nullptr, offset), [&] {
      return text("%s is read by %s at {0} and was never written", name(offset).c_str(), reader().c_str());
    });
  }
  if (TILE2CU_UNLIKELY(granule.flags & granule_in_flight)) {
    worker.report("read of in-flight async copy", places(access.site, granule.write_site, offset), [&] {
      return text("%s is read by %s at {0} while the copy that %s issued at {1} is not waited for",
                  name(offset).c_str(), reader().c_str(), writer().c_str());
    });
  } else if (TILE2CU_UNLIKELY(granule.flags & granule_mbarrier)) {
    worker.report("plain access to mbarrier", places(access.site, nullptr, offset), [&] {
      return text("%s is a memory barrier and is read by %s at {0}", name(offset).c_str(), reader().c_str());
    });
  } else if (access.is_atomic && granule.flags & granule_atomic) {
    // Atomics do not race with one another.
  } else if (TILE2CU_UNLIKELY(granule.write_clock > access.knows[granule.writer])) {
    worker.report("race: write -> read", places(access.site, granule.write_site, offset), [&] {
      if (access.lands) {
        return text(
            "%s is written by %s at {1}; the copy that %s issued at {0} may still read it, until it is waited for",
            name(offset).c_str(), writer().c_str(), reader().c_str());
      }
      return text("%s is read by %s at {0}; last written by %s at {1}; no barrier between them", name(offset).c_str(),
                  reader().c_str(), writer().c_str());
    });
  } else if (access.async_proxy && (granule.flags & granule_generic_proxy) && !worker.has_fenced(granule, access)) {
    worker.report("missing fence.proxy.async", places(access.site, granule.write_site, offset), [&] {
      return text("%s, stored by %s at {1}, is read by the async proxy at {0} without a proxy fence",
                  name(offset).c_str(), writer().c_str());
    });
  }
  if (TILE2CU_UNLIKELY(worker.options.aliased[1] && is_shared_ && granule.write_site)) {
    const auto& [begin, end] = worker.options.aliased;
    if (int(offset) >= begin && int(offset) < end) worker.note_flow(granule, offset, access);
  }
  if (!access.is_atomic) record_read(granule, access);
}

void GranuleShadow::record_read(Granule& granule, const MemoryAccess& access) {
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
std::uint16_t GranuleShadow::take_reader_clocks() {
  if (free_reader_clocks_.empty()) {
    if (reader_clocks_.size() >= most_reader_vectors) return 0;
    reader_clocks_.emplace_back();
    return std::uint16_t(reader_clocks_.size() - 1);
  }
  const std::uint16_t index = free_reader_clocks_.back();
  free_reader_clocks_.pop_back();
  return index;
}

int GranuleShadow::unordered_reader(const Granule& granule, const Clock* knows) const {
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

Whereabouts GranuleShadow::places(Site here, Site there, std::uint32_t offset) const {
  return {here, there, is_shared_ ? std::int64_t(offset) : -1};
}

std::string GranuleShadow::name(std::uint32_t offset) const {
  return is_shared_ ? text("shared offset %u", offset) : GlobalMemory::instance().name(memory_ + offset);
}

// The bytes of a granule.
std::uint32_t GranuleShadow::bytes_at(std::uint32_t offset) const {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, memory_ + offset, std::size_t(1) << shift_);
  return bytes;
}

// Suspicious writes that changed something are races.
void GranuleShadow::report_changes(Worker& worker) {
  for (const Suspicion& suspicion : suspicions_) {
    if (bytes_at(suspicion.offset) != suspicion.before) report_write_write(worker, suspicion);
  }
  suspicions_.clear();
}

void GranuleShadow::report_write_write(Worker& worker, const Suspicion& suspicion) {
  worker.report("race: write -> write", places(suspicion.site, suspicion.write_site, suspicion.offset), [&] {
    return text("%s is written by %s at {0}; previously by %s at {1}; no barrier between them",
                name(suspicion.offset).c_str(), worker.describe(suspicion.thread).c_str(),
                worker.describe(suspicion.writer).c_str());
  });
}

void GranuleShadow::write_granule(Worker& worker, Granule& granule, std::uint32_t offset, const MemoryAccess& access,
                                  std::uint16_t flags) {
  const auto self = [&] { return worker.describe(access.thread); };
  const auto writer = [&] { return worker.describe(granule.writer); };
  if (TILE2CU_UNLIKELY(granule.flags & granule_in_flight)) {
    worker.report("write over in-flight async copy", places(access.site, granule.write_site, offset), [&] {
      return text("%s is written by %s at {0} while the copy that %s issued at {1} is not waited for",
                  name(offset).c_str(), self().c_str(), writer().c_str());
    });
  } else if (TILE2CU_UNLIKELY(granule.flags & granule_mbarrier)) {
    worker.report("plain access to mbarrier", places(access.site, granule.write_site, offset), [&] {
      return text("%s is a memory barrier, initialised at {1}, and is written by %s at {0}", name(offset).c_str(),
                  self().c_str());
    });
  } else if (granule.flags & flags & granule_atomic) {
    // Atomics do not race with one another.
  } else if (granule.write_clock > access.knows[granule.writer]) {
    const std::uint32_t before = bytes_at(offset);
    const Suspicion suspicion{offset, before, access.thread, granule.writer, access.site, granule.write_site};
    if (access.follows) {
      suspicions_.push_back(suspicion);
    } else {
      report_write_write(worker, suspicion);
    }
  }
  const int reader = unordered_reader(granule, access.knows);
  if (TILE2CU_UNLIKELY(reader >= 0)) {
    worker.report("race: read -> write", places(access.site, granule.read_site, offset), [&] {
      return text(
          "%s is overwritten by %s at {0} while %s may still read it at {1}; no barrier "
          "between them",
          name(offset).c_str(), self().c_str(), worker.describe(ThreadNumber(reader)).c_str());
    });
  }
  if (granule.reader_clocks) free_reader_clocks_.push_back(granule.reader_clocks);
  granule = Granule{access.clock, 0, 0, access.thread, 0, 0, 0, flags, access.site, nullptr};
}

}  // namespace tile2cu::engine
