// ds_read_b64_tr_b16 of gfx950: every 16 lanes read four rows of 16 elements of 16 bits from shared memory, lane l four
// of row l / 4 from column 4 * (l % 4) on, and lane l receives column l. [AMD CDNA4 ISA, "DS_READ_B64_TR_B16"]
#include <cstring>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int lanes = 64, group_lanes = 16, rows = 4, lane_bytes = 8;

struct Argument {
  std::uint16_t* to;
  const void* from;
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
  worker.shared_shadow.read(worker, std::uint32_t(worker.shared_offset(from)), lane_bytes,
                            {thread, knows, knows[thread], meeting.site});
}

void count_request(Worker& worker, const Meeting& meeting) {
  LaneAddresses addresses{};
  for (int lane = 0; lane < lanes; ++lane) addresses[lane] = worker.shared_offset(of(meeting, lane).from);
  worker.requests.warp_access({meeting.site, false, true}, lane_bytes, addresses, all_lanes);
}

void read_transposed(Worker& worker, const Meeting& meeting) {
  if (worker.options.statistics) count_request(worker, meeting);
  for (int first = 0; first < lanes; first += group_lanes) {
    std::uint16_t matrix[rows][group_lanes];
    for (int lane = 0; lane < group_lanes; ++lane) {
      check_lane(worker, meeting, first + lane);
      std::memcpy(&matrix[lane / 4][lane % 4 * 4], of(meeting, first + lane).from, lane_bytes);
    }
    for (int lane = 0; lane < group_lanes; ++lane)
      for (int row = 0; row < rows; ++row) of(meeting, first + lane).to[row] = matrix[row][lane];
  }
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" void tl_engine_read_transposed(void* to, const void* from) {
  Worker& worker = current_worker();
  Argument argument{static_cast<std::uint16_t*>(to), from};
  warp_collective(worker, all_lanes, CollectiveKind::read_transposed, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { read_transposed(worker, meeting); });
}
