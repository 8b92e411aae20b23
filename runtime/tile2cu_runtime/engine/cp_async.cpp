#include "cp_async.h"

#include <cstring>
#include <utility>

#include "worker.h"

namespace tile2cu::engine {
namespace {

void move_bytes(const PendingCopy& copy) {
  std::memcpy(copy.to, copy.from, copy.source_bytes);
  std::memset(copy.to + copy.source_bytes, 0, copy.bytes - copy.source_bytes);
}

void check_issue(Worker& worker, PendingCopy& copy) {
  const MemoryAccess access = worker.access_of_current(copy.site);
  const auto offset = std::uint32_t(worker.shared_offset(copy.to));
  worker.shadow_at(offset).write(worker, offset, copy.bytes, access, granule_in_flight);
  auto& memory = GlobalMemory::instance();
  if (!copy.source_bytes || !memory.contains(copy.from)) return;
  memory.check(worker, copy.from, copy.source_bytes, false, false, copy.site);
  if (memory.is_read_only(copy.from)) return;
  worker.global_shadow.read(worker, copy.from, copy.source_bytes, access);
  copy.knows.assign(access.knows, access.knows + worker.clocks.columns());
  worker.clocks.tick(access.thread);  // what the thread itself writes from here on may come before the copy
}

void land(Worker& worker, const PendingCopy& copy) {
  if (worker.options.landing != TL_ENGINE_EARLY) move_bytes(copy);
  if (!worker.options.check) return;
  MemoryAccess access = worker.access_of_current(copy.site);
  const auto offset = std::uint32_t(worker.shared_offset(copy.to));
  worker.shadow_at(offset).land(offset, copy.bytes, access.thread, access.clock,
                                granule_initialised | granule_generic_proxy);
  if (copy.knows.empty()) return;
  access.knows = copy.knows.data();
  access.lands = true;
  worker.global_shadow.read(worker, copy.from, copy.source_bytes, access);
}

}  // namespace

void CopyQueue::issue(Worker& worker, PendingCopy copy) {
  const auto addresses =
      reinterpret_cast<std::uintptr_t>(copy.to) | (copy.source_bytes ? reinterpret_cast<std::uintptr_t>(copy.from) : 0);
  if (TILE2CU_UNLIKELY(addresses % copy.bytes)) {
    worker.report("misaligned cp.async", {copy.site}, [&] {
      return text("cp.async of %u bytes at {0} by %s: an address is not a multiple of %u", copy.bytes,
                  worker.describe_current().c_str(), copy.bytes);
    });
  }
  if (TILE2CU_UNLIKELY(!worker.is_shared(copy.to, copy.bytes))) {
    worker.report("cp.async destination is not shared memory", {copy.site},
                  [&] { return text("cp.async at {0} by %s", worker.describe_current().c_str()); });
    return;
  }
  if (worker.options.check) check_issue(worker, copy);
  if (worker.options.statistics) {
    worker.requests.lane_access(worker, copy.site, worker.shared_offset(copy.to), copy.bytes, true, true);
    if (copy.source_bytes) {
      worker.requests.lane_access(worker, copy.site, reinterpret_cast<std::uintptr_t>(copy.from), copy.bytes, false,
                                  false);
    }
  }
  if (worker.options.landing == TL_ENGINE_EARLY) move_bytes(copy);
  copies.push_back(std::move(copy));
}

void CopyQueue::wait(Worker& worker, int groups_left) {
  const int landing = int(group_ends.size()) - groups_left;
  if (landing <= 0) return;
  const std::uint32_t landed = group_ends[landing - 1];
  for (std::uint32_t index = 0; index < landed; ++index) land(worker, copies[index]);
  copies.erase(copies.begin(), copies.begin() + landed);
  group_ends.erase(group_ends.begin(), group_ends.begin() + landing);
  for (std::uint32_t& end : group_ends) end -= landed;
}

void CopyQueue::land_all(Worker& worker) {
  for (const PendingCopy& copy : copies) land(worker, copy);
  copies.clear();
  for (std::uint32_t& end : group_ends) end = 0;
}

void CopyQueue::finish(Worker& worker) {
  if (!copies.empty()) {
    worker.report("cp.async never waited", {copies.front().site}, [&] {
      return text("%s exits while the cp.async issued at {0} is in flight", worker.describe_current().c_str());
    });
  }
  copies.clear();
  group_ends.clear();
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_cp_async(void* to, const void* from, int bytes, int source_bytes) {
  Worker& worker = current_worker();
  worker.current->copies.issue(worker, {static_cast<char*>(to),
                                        static_cast<const char*>(from),
                                        std::uint32_t(bytes),
                                        std::uint32_t(source_bytes),
                                        TILE2CU_CALL_SITE,
                                        {}});
}

void tl_engine_cp_async_commit() { current_worker().current->copies.commit(); }

void tl_engine_cp_async_wait(int groups_left) {
  Worker& worker = current_worker();
  worker.current->copies.wait(worker, groups_left);
}

// The arrival follows the completion of the copies, at the latest at the phase's completion; here both happen
// immediately.
void tl_engine_cp_async_arrive(void* barrier) {
  Worker& worker = current_worker();
  worker.current->copies.land_all(worker);
  worker.memory_barriers.arrive(worker, barrier, 0, TILE2CU_CALL_SITE);
}

}  // extern "C"
