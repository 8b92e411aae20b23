// ds_read_b64_tr_b16 and _b8 of gfx950: each group of 16 lanes reads rows of 16 elements from shared memory, 8 bytes
// per lane in lane order, and lane l receives column l. [AMD CDNA4 ISA, "DS_READ_B64_TR_B16", "DS_READ_B64_TR_B8"]
#include <cstring>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int lanes = 64, group_lanes = 16, lane_bytes = 8;

struct Argument {
  unsigned char* to;
  const void* from;
  int element_bytes;
};

const Argument& of(const Meeting& meeting, int lane) { return *static_cast<const Argument*>(meeting.arguments[lane]); }

void check_lane(Worker& worker, const Meeting& meeting, int lane) {
  const void* from = of(meeting, lane).from;
  if (TILE2CU_UNLIKELY(reinterpret_cast<std::uintptr_t>(from) % lane_bytes)) {
    worker.report("misaligned ds_read_tr", {meeting.site},
                  [&] { return text("lane %d of ds_read_tr at {0}: its address is not 8-byte aligned", lane); });
  }
  if (!worker.options.check) return;
  if (TILE2CU_UNLIKELY(!worker.is_shared(from))) {
    worker.report("ds_read_tr from non-shared address", {meeting.site},
                  [&] { return text("lane %d of ds_read_tr at {0}", lane); });
    return;
  }
  const auto thread = ThreadNumber(worker.current->warp * lanes + lane);
  const Clock* knows = worker.clocks.row(thread);
  const auto offset = std::uint32_t(worker.shared_offset(from));
  MemoryAccess access{thread, knows, knows[thread], meeting.site};
  access.is_operand = worker.current->reads_operands;
  worker.shadow_at(offset).read(worker, offset, lane_bytes, access);
}

void count_request(Worker& worker, const Meeting& meeting) {
  LaneAddresses addresses{};
  for (int lane = 0; lane < lanes; ++lane) addresses[lane] = worker.shared_offset(of(meeting, lane).from);
  worker.requests.warp_access({meeting.site, false, true}, lane_bytes, addresses, all_lanes);
}

void read_transposed(Worker& worker, const Meeting& meeting) {
  if (worker.options.statistics) count_request(worker, meeting);
  for (int first = 0; first < lanes; first += group_lanes) {
    unsigned char matrix[group_lanes * lane_bytes];
    for (int lane = 0; lane < group_lanes; ++lane) {
      check_lane(worker, meeting, first + lane);
      std::memcpy(matrix + lane * lane_bytes, of(meeting, first + lane).from, lane_bytes);
    }
    for (int lane = 0; lane < group_lanes; ++lane) {
      const auto& [to, from, bytes] = of(meeting, first + lane);
      for (int row = 0; row < lane_bytes / bytes; ++row)
        std::memcpy(to + row * bytes, matrix + (row * group_lanes + lane) * bytes, bytes);
    }
  }
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" void tl_engine_read_transposed(void* to, const void* from, int element_bytes) {
  Worker& worker = current_worker();
  Argument argument{static_cast<unsigned char*>(to), from, element_bytes};
  warp_collective(worker, all_lanes, CollectiveKind::read_transposed, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { read_transposed(worker, meeting); });
}
