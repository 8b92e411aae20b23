#include "shared_shadow.h"

#include "worker.h"

namespace tile2cu::engine {

void SharedShadow::reset(const char* arena, std::size_t base, std::size_t shared_bytes, int clock_columns) {
  base_ = std::uint32_t(base);
  ended_ = false;
  granules_.reset(arena + base, true, shared_bytes, clock_columns, 0);
}

void SharedShadow::read(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access) {
  settle(worker);
  if (is_there(worker, offset - base_, bytes, access.site, "read")) {
    granules_.read(worker, offset - base_, bytes, access);
  }
}

void SharedShadow::write(Worker& worker, std::uint32_t offset, std::uint32_t bytes, const MemoryAccess& access,
                         std::uint16_t flags) {
  settle(worker);
  if (is_there(worker, offset - base_, bytes, access.site, "write")) {
    granules_.write(worker, offset - base_, bytes, access, flags);
  }
}

void SharedShadow::land(std::uint32_t offset, std::uint32_t bytes, ThreadNumber writer, Clock clock,
                        std::uint16_t flags) {
  granules_.land(offset - base_, bytes, writer, clock, flags);
}

void SharedShadow::mark_mbarrier(std::uint32_t offset) {
  offset -= base_;
  if (std::size_t(offset) + 8 > granules_.bytes()) return;
  for (std::uint32_t at = 0; at < 8; at += granules_.granule_bytes())
    granules_.at(offset + at).flags |= granule_mbarrier;
}

bool SharedShadow::is_there(Worker& worker, std::uint32_t offset, std::uint32_t bytes, Site site,
                            const char* what) const {
  if (TILE2CU_UNLIKELY(ended_)) {
    worker.report("shared memory of an exited block", {site, nullptr, offset}, [&] {
      return text("%s at shared offset %u of block %u by %s at {0}; that block has exited", what, offset,
                  worker.blocks[base_ / Worker::arena_bytes].number, worker.describe_current().c_str());
    });
    return false;
  }
  if (std::size_t(offset) + bytes <= granules_.bytes()) return true;
  worker.report("shared out-of-bounds", {site, nullptr, offset}, [&] {
    return text("%s of %u bytes at shared offset %u by %s at {0}; the block has %zu bytes of shared memory", what,
                bytes, offset, worker.describe_current().c_str(), granules_.bytes());
  });
  return false;
}

void SharedShadow::end(Worker& worker, const VectorClocks::Snapshot& known) {
  settle(worker);
  for (std::uint32_t offset = 0; offset < granules_.bytes(); offset += granules_.granule_bytes()) {
    const Granule& granule = granules_.at(offset);
    if (granule.flags & granule_in_flight || granule.write_clock > known[granule.writer]) {
      report_end(worker, offset, granule.writer, granule.write_site, "written");
    }
    const int reader = granules_.unordered_reader(granule, known.data());
    if (reader >= 0) report_end(worker, offset, ThreadNumber(reader), granule.read_site, "read");
  }
  ended_ = true;
}

void SharedShadow::report_end(Worker& worker, std::uint32_t offset, ThreadNumber who, Site site,
                              const char* what) const {
  worker.report("shared memory of an exited block", {site, nullptr, offset}, [&] {
    return text("shared offset %u of block %u is %s by %s at {0}; that block may have exited", offset,
                worker.blocks[base_ / Worker::arena_bytes].number, what, worker.describe(who).c_str());
  });
}

}  // namespace tile2cu::engine
