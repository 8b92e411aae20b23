#include "tma.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr std::uint32_t chunk_bytes = 16;

// A swizzle permutes 16-byte chunks: their index is xor-ed with the row index in a pattern with a period of 8, 4 or 2
// rows of 128 bytes. It applies to addresses, so the window's base is included. [PTX ISA, Tensor swizzling modes]
std::uint32_t swizzled(std::uint32_t offset, int swizzle_bytes) {
  const std::uint32_t address = offset + Worker::shared_window_base;
  const std::uint32_t rows = swizzle_bytes == 128 ? 7 : swizzle_bytes == 64 ? 3 : swizzle_bytes == 32 ? 1 : 0;
  return (address ^ (address >> 7 & rows) << 4) - Worker::shared_window_base;
}

// Calls visit(shared offset, global address or null, bytes) for one row of the box, in pieces of at most 16 bytes that
// are each inside or outside the tensor. `row` is null if the whole row is outside.
template <class Visit> void for_each_piece_of_row(const Box& box, std::uint32_t linear, const char* row, Visit& visit) {
  const int size = box.map.element_bytes, per_chunk = int(chunk_bytes) / size;
  const long end = std::min<long>(box.map.box[0], long(box.map.extents[0]) - box.at[0]);  // end of the columns inside
  for (int c = 0; c < box.map.box[0];) {
    const bool inside = row && c + long(box.at[0]) >= 0 && c < end;
    int next = std::min(c / per_chunk * per_chunk + per_chunk, box.map.box[0]);
    if (inside) next = int(std::min<long>(next, end));
    const std::uint32_t offset = linear + std::uint32_t(c * size), within = offset % chunk_bytes;
    visit(swizzled(offset - within, box.map.swizzle_bytes) + within, inside ? row + long(c) * size : nullptr,
          std::uint32_t((next - c) * size));
    c = next;
  }
}

// Visits all rows of the box, which is contiguous in shared memory, innermost dimension first.
template <class Visit> void for_each_piece(const Box& box, Visit&& visit) {
  const auto& map = box.map;
  std::uint32_t linear = box.shared_offset;
  std::array<int, most_dimensions> index{};
  while (true) {
    bool inside = true;
    const char* row = static_cast<const char*>(map.base) + long(box.at[0]) * map.element_bytes;
    for (int d = 1; d < most_dimensions; ++d) {
      const long coordinate = long(box.at[d]) + index[d];
      inside = inside && coordinate >= 0 && coordinate < long(map.extents[d]);
      row += coordinate * long(map.strides[d]);
    }
    for_each_piece_of_row(box, linear, inside ? row : nullptr, visit);
    linear += std::uint32_t(map.box[0] * map.element_bytes);
    int d = 1;
    while (d < most_dimensions && ++index[d] == map.box[d]) index[d++] = 0;
    if (d == most_dimensions) return;
  }
}

bool starts_at_negative(const Box& box) {
  return std::any_of(box.at.begin(), box.at.end(), [](int coordinate) { return coordinate < 0; });
}

Box box_of(Worker& worker, const tl_engine_tensor_map& map, const void* shared, const std::int32_t* at, int rank,
           Site site) {
  Box box{map, std::uint32_t(worker.shared_offset(shared)), {}};
  for (int d = 0; d < rank; ++d) box.at[d] = at[rank - 1 - d];
  if (rank != map.rank) {
    worker.report("TMA rank mismatch", {site},
                  [&] { return text("%d coordinates at {0} for a tensor map with %d dimensions", rank, map.rank); });
  }
  return box;
}

// Each of these is an illegal instruction on an H200, or writes to a wrong address.
void check_shape(Worker& worker, const Box& box, bool is_store, Site site) {
  const std::uint32_t alignment = box.map.swizzle_bytes ? 128 : 16;
  if (box.shared_offset % alignment) {
    worker.report("misaligned TMA destination", {site, nullptr, box.shared_offset}, [&] {
      return text("shared offset %u of the box at {0} is not a multiple of %u", box.shared_offset, alignment);
    });
  }
  if (box.at[0] * box.map.element_bytes % int(chunk_bytes)) {
    worker.report("misaligned TMA column", {site, nullptr, box.shared_offset}, [&] {
      return text("the box at {0} starts at column %d, which is not a multiple of 16 bytes", box.at[0]);
    });
  }
  if (is_store && starts_at_negative(box)) {
    worker.report("TMA store at negative coordinates", {site, nullptr, box.shared_offset}, [&] {
      return text("the box at {0} starts at row %d, column %d; stores must not start out of bounds", box.at[1],
                  box.at[0]);
    });
  }
  const int row_bytes = box.map.box[0] * box.map.element_bytes;
  if (box.map.swizzle_bytes && row_bytes > box.map.swizzle_bytes) {
    worker.report("TMA box wider than the swizzle span", {site}, [&] {
      return text("a row of the box at {0} has %d bytes, the swizzle span %d", row_bytes, box.map.swizzle_bytes);
    });
  }
}

// A map that is not encoded: a tensor without elements has none.
bool is_empty(Worker& worker, const tl_engine_tensor_map& map, Site site) {
  if (map.rank) return false;
  worker.report("TMA of an empty tensor", {site},
                [&] { return text("%s copies a box of an empty tensor at {0}", worker.describe_current().c_str()); });
  return true;
}

// Checks a copy between blocks. [PTX ISA, cp.async.bulk: multiples of 16 bytes; destination and mbarrier are in one
// block]
void check_bulk_copy(Worker& worker, const void* to, const void* from, std::uint32_t bytes, const void* barrier,
                     Site site) {
  const auto misaligned = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes;
  if (misaligned % chunk_bytes) {
    worker.report("misaligned copy between blocks", {site}, [&] {
      return text("%s copies %u bytes at {0}: the size or an address is not a multiple of 16",
                  worker.describe_current().c_str(), bytes);
    });
  }
  const bool from_own = worker.own_offset(from) + bytes <= Worker::arena_bytes;
  const bool together =
      worker.is_shared(to, bytes) && worker.is_shared(barrier) &&
      worker.shared_offset(to) / Worker::arena_bytes == worker.shared_offset(barrier) / Worker::arena_bytes;
  if (from_own && together) return;
  worker.report("invalid copy between blocks", {site}, [&] {
    return text(
        "%s copies at {0}: the source is not its own block's shared memory, or destination and mbarrier are in "
        "different blocks",
        worker.describe_current().c_str());
  });
  worker.abandon();
}

// Checks the block mask of a multicast load.
void check_mask(Worker& worker, std::uint32_t mask, Site site) {
  if (mask && mask >> worker.blocks.size() == 0) return;
  worker.report("invalid cluster address", {site}, [&] {
    return text("%s loads at {0} to the blocks of mask %#x; the cluster has %zu blocks blocks",
                worker.describe_current().c_str(), mask, worker.blocks.size());
  });
  worker.abandon();
}

// Atomic: blocks on other OS threads may add to the same floats.
void add_floats(char* to, const char* from, std::uint32_t bytes) {
  for (std::uint32_t at = 0; at < bytes; at += sizeof(float)) {
    auto* const place = reinterpret_cast<std::uint32_t*>(to + at);
    std::uint32_t old = __atomic_load_n(place, __ATOMIC_RELAXED), sum;
    float value;
    std::memcpy(&value, from + at, sizeof value);
    do {
      float before;
      std::memcpy(&before, &old, sizeof before);
      const float after = before + value;
      std::memcpy(&sum, &after, sizeof sum);
    } while (!__atomic_compare_exchange_n(place, &old, sum, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  }
}

// Visits what the box has of its tensor in the device heap, in pieces: visit(shared offset, global address, bytes).
template <class Visit> void for_each_tensor_piece(Worker& worker, const Box& box, Visit&& visit) {
  const auto& memory = GlobalMemory::instance();
  for_each_piece(box, [&](std::uint32_t shared, const char* global, std::uint32_t piece) {
    if (global && memory.contains(global) && worker.is_shared(shared, piece)) visit(shared, global, piece);
  });
}

// A load reads its tensor where it starts, and until it lands.
void check_source(Worker& worker, const Box& box, const MemoryAccess& access) {
  for_each_tensor_piece(worker, box, [&](std::uint32_t, const char* global, std::uint32_t piece) {
    if (!access.lands) GlobalMemory::instance().check(worker, global, piece, false, false, access.site);
    worker.global_shadow.read(worker, global, piece, access);
  });
}

// Moves the bytes of a store whose tile is waited for.
void perform(Worker& worker, const StoreQueue::Store& store) {
  const Box& box = store.box;
  MemoryAccess access = worker.access_of_current(store.site);
  auto& memory = GlobalMemory::instance();
  if (worker.options.check) {  // unchanged since it was issued, or somebody wrote too early: behind a barrier, too
    access.knows = store.knows.data(), access.async_proxy = true;
    worker.shadow_at(box.shared_offset).read(worker, box.shared_offset, box.bytes(), access);
  }
  for_each_piece(box, [&](std::uint32_t shared, const char* global, std::uint32_t piece) {
    if (!global || !worker.is_shared(shared, piece)) return;
    const bool is_checked = worker.options.check && memory.contains(global);
    if (is_checked) memory.check(worker, global, piece, true, store.adds, store.site);
    if (is_checked && store.adds) {
      worker.global_shadow.write(worker, global, piece, access, granule_initialised | granule_atomic);
    }
    if (store.adds)
      add_floats(const_cast<char*>(global), worker.arena + shared, piece);
    else
      std::memcpy(const_cast<char*>(global), worker.arena + shared, piece);
    if (is_checked) memory.check_stored(worker, global, piece, store.site);
  });
}

// Whoever learns of the wait for it may use what it stored.
void complete(Worker& worker, const StoreQueue::Store& store) {
  if (store.adds) return;
  const MemoryAccess access = worker.access_of_current(store.site);
  for_each_tensor_piece(worker, store.box, [&](std::uint32_t, const char* global, std::uint32_t piece) {
    worker.global_shadow.land(global, piece, access.thread, access.clock);
  });
}

}  // namespace

void TmaQueue::load(Worker& worker, const Box& box, const void* barrier, Site site) {
  check_shape(worker, box, false, site);
  start(worker, box, barrier, site);
}

// A bulk copy is a box of a one-dimensional tensor.
void TmaQueue::copy(Worker& worker, void* to, const void* from, std::uint32_t bytes, const void* barrier, Site site) {
  check_bulk_copy(worker, to, from, bytes, barrier, site);
  Box box{{}, std::uint32_t(worker.shared_offset(to)), {}};
  box.map.base = from, box.map.rank = 1, box.map.element_bytes = 1;
  for (int d = 0; d < most_dimensions; ++d) box.map.extents[d] = 1, box.map.strides[d] = 1, box.map.box[d] = 1;
  box.map.extents[0] = bytes, box.map.box[0] = std::int32_t(bytes);
  start(worker, box, barrier, site);
}

void TmaQueue::start(Worker& worker, const Box& box, const void* barrier, Site site) {
  MemoryBarrier& state = worker.memory_barriers.find(worker, barrier, site);
  Load load{box, std::uint32_t(worker.shared_offset(barrier)), 0, 0, {}, site};
  if (worker.options.check) {
    const ThreadNumber self = worker.current->linear;
    load.agent = ThreadNumber(worker.thread_slots + state.agent);
    load.agent_clock = ++state.agent_clock + 1;
    const Clock* knows = worker.clocks.row(self);
    worker.shadow_at(box.shared_offset)
        .write(worker, box.shared_offset, box.bytes(), {load.agent, knows, load.agent_clock, site}, granule_in_flight);
    if (worker.is_shared(box.map.base)) {
      const auto from = std::uint32_t(worker.shared_offset(box.map.base));
      worker.shadow_at(from).read(worker, from, box.bytes(), {load.agent, knows, load.agent_clock, site, true});
    }
    check_source(worker, box, {self, knows, knows[self], site, true});
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
  for_each_piece(load.box, [&](std::uint32_t shared, const char* global, std::uint32_t piece) {
    if (!worker.is_shared(shared, piece)) return;
    if (global) {
      std::memcpy(worker.arena + shared, global, piece);
    } else {
      std::memset(worker.arena + shared, 0, piece);
    }
  });
  const std::uint32_t bytes = load.box.bytes();
  if (worker.options.check) {
    worker.shadow_at(load.box.shared_offset)
        .land(load.box.shared_offset, bytes, load.agent, load.agent_clock, granule_initialised);
    MemoryAccess access{load.agent, load.knows.data(), load.agent_clock, load.site, true};
    access.lands = true;
    check_source(worker, load.box, access);
  }
  worker.memory_barriers.deliver(worker, load.barrier_offset, bytes, load.knows);
}

void StoreQueue::issue(Worker& worker, const Box& box, Site site, bool adds) {
  check_shape(worker, box, true, site);
  Store store{box, site, {}, adds};
  if (worker.options.check) {
    MemoryAccess access = worker.access_of_current(site);
    access.async_proxy = true;
    worker.shadow_at(box.shared_offset).read(worker, box.shared_offset, box.bytes(), access);
    for_each_tensor_piece(worker, box, [&](std::uint32_t, const char* global, std::uint32_t piece) {
      if (!adds) worker.global_shadow.write(worker, global, piece, access, granule_in_flight);
    });
    store.knows.assign(access.knows, access.knows + worker.clocks.columns());
    worker.clocks.tick(access.thread);
  }
  stores.push_back(std::move(store));
}

int StoreQueue::groups_awaited(int groups_left) const { return std::max(int(group_ends.size()) - groups_left, 0); }

void StoreQueue::wait_read(Worker& worker, int groups_left) {
  const int groups = groups_awaited(groups_left);
  for (std::uint32_t index = 0; groups && index < group_ends[groups - 1]; ++index) {
    if (!std::exchange(stores[index].is_read, true)) perform(worker, stores[index]);
  }
}

void StoreQueue::wait(Worker& worker, int groups_left) {
  wait_read(worker, groups_left);
  const int groups = groups_awaited(groups_left);
  if (!groups) return;
  const std::uint32_t end = group_ends[groups - 1];
  if (worker.options.check) {
    for (std::uint32_t index = 0; index < end; ++index) complete(worker, stores[index]);
  }
  stores.erase(stores.begin(), stores.begin() + end);
  group_ends.erase(group_ends.begin(), group_ends.begin() + groups);
  for (std::uint32_t& group_end : group_ends) group_end -= end;
}

void StoreQueue::finish(Worker& worker) {
  const auto unread = std::find_if(stores.begin(), stores.end(), [](const Store& store) { return !store.is_read; });
  if (unread != stores.end()) {
    worker.report("TMA store never waited", {unread->site}, [&] {
      return text("%s exits while the store issued at {0} may still read shared memory",
                  worker.describe_current().c_str());
    });
  }
  stores.clear();
  group_ends.clear();
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_tma_load(void* to, const tl_engine_tensor_map* map, void* barrier, const std::int32_t* at, int rank) {
  Worker& worker = current_worker();
  if (is_empty(worker, *map, TILE2CU_CALL_SITE)) worker.abandon();
  worker.tma.load(worker, box_of(worker, *map, to, at, rank, TILE2CU_CALL_SITE), barrier, TILE2CU_CALL_SITE);
}

void tl_engine_tma_load_multicast(void* to, const tl_engine_tensor_map* map, void* barrier, const std::int32_t* at,
                                  int rank, std::uint32_t mask) {
  Worker& worker = current_worker();
  const Site site = TILE2CU_CALL_SITE;
  if (is_empty(worker, *map, site)) worker.abandon();
  check_mask(worker, mask, site);
  const std::size_t tile = worker.own_offset(to), announced = worker.own_offset(barrier);
  for (std::size_t block = 0; block < worker.blocks.size(); ++block) {
    if (!(mask >> block & 1)) continue;
    char* const memory = worker.arena + block * Worker::arena_bytes;
    worker.tma.load(worker, box_of(worker, *map, memory + tile, at, rank, site), memory + announced, site);
  }
}

void tl_engine_copy_to_block(void* to, const void* from, int bytes, void* barrier) {
  Worker& worker = current_worker();
  worker.tma.copy(worker, to, from, std::uint32_t(bytes), barrier, TILE2CU_CALL_SITE);
}

void tl_engine_tma_store(const tl_engine_tensor_map* map, const void* from, const std::int32_t* at, int rank) {
  Worker& worker = current_worker();
  if (is_empty(worker, *map, TILE2CU_CALL_SITE)) worker.abandon();
  worker.current->stores.issue(worker, box_of(worker, *map, from, at, rank, TILE2CU_CALL_SITE), TILE2CU_CALL_SITE);
}

void tl_engine_tma_add(const tl_engine_tensor_map* map, const void* from, const std::int32_t* at, int rank) {
  Worker& worker = current_worker();
  const Site site = TILE2CU_CALL_SITE;
  if (is_empty(worker, *map, site)) worker.abandon();
  worker.current->stores.issue(worker, box_of(worker, *map, from, at, rank, site), site, true);
}

void tl_engine_tma_store_commit() { current_worker().current->stores.commit(); }

void tl_engine_tma_store_wait_read(int groups_left) {
  Worker& worker = current_worker();
  worker.current->stores.wait_read(worker, groups_left);
}

void tl_engine_tma_store_wait(int groups_left) {
  Worker& worker = current_worker();
  worker.current->stores.wait(worker, groups_left);
}

}  // extern "C"
