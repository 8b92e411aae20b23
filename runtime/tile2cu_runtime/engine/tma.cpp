#include "tma.h"

#include <cstring>
#include <utility>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr std::uint32_t chunk_bytes = 16;

// Swizzling exchanges 16-byte chunks: their number is xor-ed with that of the row in a pattern that repeats every 8, 4
// or 2 rows of 128 bytes. It works on addresses, hence the window's base.  [PTX ISA, Tensor swizzling modes]
std::uint32_t swizzled(std::uint32_t offset, int swizzle_bytes) {
  const std::uint32_t address = offset + Worker::shared_window_base;
  const std::uint32_t rows = swizzle_bytes == 128 ? 7 : swizzle_bytes == 64 ? 3 : swizzle_bytes == 32 ? 1 : 0;
  return (address ^ (address >> 7 & rows) << 4) - Worker::shared_window_base;
}

// Visits each element of the box: its shared offset and its global address, null outside of the tensor.
template <class Visit> void for_each_element(const Box& box, Visit&& visit) {
  const auto& map = box.map;
  const std::uint32_t row_bytes = std::uint32_t(map.box_columns * map.element_bytes);
  for (int r = 0; r < map.box_rows; ++r) {
    const long row = long(box.row) + r;
    for (int c = 0; c < map.box_columns; ++c) {
      const long column = long(box.column) + c;
      const std::uint32_t linear =
          box.shared_offset + std::uint32_t(r) * row_bytes + std::uint32_t(c * map.element_bytes);
      const std::uint32_t within_chunk = linear % chunk_bytes;
      const std::uint32_t shared = swizzled(linear - within_chunk, map.swizzle_bytes) + within_chunk;
      const bool inside = row >= 0 && column >= 0 && row < long(map.rows) && column < long(map.columns);
      const char* base = static_cast<const char*>(map.base);
      visit(shared, inside ? base + row * long(map.row_bytes) + column * map.element_bytes : nullptr);
    }
  }
}

// Each of these stops an H200 with "illegal instruction" or writes elsewhere.
void check_shape(Worker& worker, const Box& box, bool is_store, Site site) {
  const std::uint32_t alignment = box.map.swizzle_bytes ? 128 : 16;
  if (box.shared_offset % alignment) {
    worker.report("misaligned TMA destination", {site, nullptr, box.shared_offset}, [&] {
      return text("shared offset %u of the box at {0} is no multiple of %u", box.shared_offset, alignment);
    });
  }
  if (box.column * box.map.element_bytes % int(chunk_bytes)) {
    worker.report("misaligned TMA column", {site, nullptr, box.shared_offset}, [&] {
      return text("the box at {0} starts at column %d, which is no multiple of 16 bytes", box.column);
    });
  }
  if (is_store && (box.column < 0 || box.row < 0)) {
    worker.report("TMA store at a negative place", {site, nullptr, box.shared_offset}, [&] {
      return text("the box at {0} starts at row %d, column %d; only loads may start outside", box.row, box.column);
    });
  }
  const int row_bytes = box.map.box_columns * box.map.element_bytes;
  if (box.map.swizzle_bytes && row_bytes > box.map.swizzle_bytes) {
    worker.report("TMA box wider than the swizzle span", {site}, [&] {
      return text("a row of the box at {0} has %d bytes, the swizzle %d", row_bytes, box.map.swizzle_bytes);
    });
  }
}

}  // namespace

void TmaQueue::load(Worker& worker, const Box& box, const void* barrier, Site site) {
  MemoryBarrier& state = worker.memory_barriers.find(worker, barrier, site);
  check_shape(worker, box, false, site);
  Load load{box, std::uint32_t(worker.shared_offset(barrier)), 0, 0, {}};
  if (worker.options.check) {
    const ThreadNumber self = worker.current->linear;
    load.agent = ThreadNumber(worker.block_threads + state.agent);
    load.agent_clock = ++state.agent_clock + 1;
    const Clock* knows = worker.clocks.row(self);
    worker.shared_shadow.write(worker, box.shared_offset, box.bytes(), {load.agent, knows, load.agent_clock, site},
                               granule_in_flight);
    load.knows.assign(knows, knows + worker.clocks.columns());
    load.knows[load.agent] = load.agent_clock;
    worker.clocks.tick(self);
  }
  loads_.push_back(std::move(load));
  if (worker.options.landing == TL_ENGINE_EARLY) land(worker, loads_.size() - 1);
}

void TmaQueue::land_any(Worker& worker) { land(worker, worker.random.below(std::uint32_t(loads_.size()))); }

void TmaQueue::land(Worker& worker, std::size_t index) {
  const Load load = std::move(loads_[index]);
  loads_.erase(loads_.begin() + long(index));
  const int element = load.box.map.element_bytes;
  for_each_element(load.box, [&](std::uint32_t shared, const char* global) {
    if (shared + element > Worker::arena_bytes) return;
    if (global) {
      std::memcpy(worker.arena + shared, global, element);
    } else {
      std::memset(worker.arena + shared, 0, element);
    }
  });
  const std::uint32_t bytes = load.box.bytes();
  if (worker.options.check) {
    worker.shared_shadow.land(load.box.shared_offset, bytes, load.agent, load.agent_clock, granule_initialised);
  }
  worker.memory_barriers.deliver(worker, load.barrier_offset, bytes, load.knows);
}

void StoreQueue::issue(Worker& worker, const Box& box, Site site) {
  check_shape(worker, box, true, site);
  if (worker.options.check) {
    const ThreadNumber self = worker.current->linear;
    const Clock* knows = worker.clocks.row(self);
    worker.shared_shadow.read(worker, box.shared_offset, box.bytes(), {self, knows, knows[self], site, true});
  }
  stores.emplace_back(box, site);
}

void StoreQueue::wait(Worker& worker, int groups_left) {
  const int done = int(group_ends.size()) - groups_left;
  if (done <= 0) return;
  const std::uint32_t end = group_ends[done - 1];
  auto& memory = GlobalMemory::instance();
  for (std::uint32_t index = 0; index < end; ++index) {
    const auto& [box, site] = stores[index];
    const int element = box.map.element_bytes;
    if (worker.options.check) {  // unchanged since it was issued, or somebody wrote too early
      const ThreadNumber self = worker.current->linear;
      const Clock* knows = worker.clocks.row(self);
      worker.shared_shadow.read(worker, box.shared_offset, box.bytes(), {self, knows, knows[self], site, true});
    }
    for_each_element(box, [&, at = site](std::uint32_t shared, const char* global) {
      if (!global || shared + element > Worker::arena_bytes) return;
      if (worker.options.check && memory.contains(global)) {
        memory.check(worker, global, std::uint32_t(element), true, false, at);
      }
      std::memcpy(const_cast<char*>(global), worker.arena + shared, element);
    });
  }
  stores.erase(stores.begin(), stores.begin() + end);
  group_ends.erase(group_ends.begin(), group_ends.begin() + done);
  for (std::uint32_t& group_end : group_ends) group_end -= end;
}

void StoreQueue::finish(Worker& worker) {
  if (!stores.empty()) {
    worker.report("TMA store never waited", {stores.front().second}, [&] {
      return text("%s returns while the store issued at {0} may still read shared memory",
                  worker.describe_current().c_str());
    });
  }
  stores.clear();
  group_ends.clear();
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_tma_load(void* to, const tl_engine_tensor_map* map, void* barrier, int column, int row) {
  Worker& worker = current_worker();
  worker.tma.load(worker, {*map, std::uint32_t(worker.shared_offset(to)), column, row}, barrier, TILE2CU_CALL_SITE);
}

void tl_engine_tma_store(const tl_engine_tensor_map* map, const void* from, int column, int row) {
  Worker& worker = current_worker();
  worker.current->stores.issue(worker, {*map, std::uint32_t(worker.shared_offset(from)), column, row},
                               TILE2CU_CALL_SITE);
}

void tl_engine_tma_store_commit() { current_worker().current->stores.commit(); }

void tl_engine_tma_store_wait(int groups_left) {
  Worker& worker = current_worker();
  worker.current->stores.wait(worker, groups_left);
}

}  // extern "C"
