// stmatrix: stores 8x8 matrices of 16-bit elements from the registers of a warp to shared memory. Lane l passes the
// address of row l % 8 of matrix l / 8, and holds elements 2 * (l % 4) and the next of row l / 4 of each matrix, or of
// its transpose. [PTX ISA, stmatrix]
#include <cstring>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int lanes = 32, row_bytes = 16;

struct StmatrixArgument {
  void* row;
  const std::uint32_t* registers;
  bool transposed;
};

const StmatrixArgument& of(const Meeting& meeting, int lane) {
  return *static_cast<const StmatrixArgument*>(meeting.arguments[lane]);
}

// Returns false if the row must not be stored.
bool check_row(Worker& worker, const Meeting& meeting, int lane) {
  const void* row = of(meeting, lane).row;
  if (TILE2CU_UNLIKELY(reinterpret_cast<std::uintptr_t>(row) % row_bytes)) {
    worker.report("misaligned stmatrix", {meeting.site},
                  [&] { return text("lane %d of stmatrix at {0}: its row is not 16-byte aligned", lane); });
  }
  if (TILE2CU_UNLIKELY(!worker.is_shared(row, row_bytes))) {
    worker.report("stmatrix to non-shared address", {meeting.site},
                  [&] { return text("lane %d of stmatrix at {0}", lane); });
    return false;
  }
  if (!worker.options.check) return true;
  const auto thread = ThreadNumber(worker.current->warp * lanes + lane);
  const Clock* knows = worker.clocks.row(thread);
  const auto offset = std::uint32_t(worker.shared_offset(row));
  worker.shadow_at(offset).write(worker, offset, row_bytes, {thread, knows, knows[thread], meeting.site},
                                 granule_initialised | granule_generic_proxy);
  return true;
}

void count_request(Worker& worker, const Meeting& meeting) {
  LaneAddresses addresses{};
  for (int lane = 0; lane < lanes; ++lane) addresses[lane] = worker.shared_offset(of(meeting, lane).row);
  worker.requests.warp_access({meeting.site, true, true}, row_bytes, addresses, (std::uint64_t(1) << lanes) - 1);
}

void store_matrices(Worker& worker, const Meeting& meeting) {
  for (int lane = 0; lane < lanes; ++lane) {
    if (!check_row(worker, meeting, lane)) continue;
    const int matrix = lane / 8, row = lane % 8;
    std::uint16_t elements[8];
    for (int i = 0; i < 8; ++i) {
      const bool transposed = of(meeting, lane).transposed;
      const int from_row = transposed ? i : row, from_column = transposed ? row : i;
      const std::uint32_t pair = of(meeting, from_row * 4 + from_column / 2).registers[matrix];
      elements[i] = std::uint16_t(pair >> 16 * (from_column % 2));
    }
    std::memcpy(of(meeting, lane).row, elements, row_bytes);
  }
  if (worker.options.statistics) count_request(worker, meeting);
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" void tl_engine_stmatrix(void* row, const std::uint32_t* registers, int transposed) {
  Worker& worker = current_worker();
  StmatrixArgument argument{row, registers, transposed != 0};
  warp_collective(worker, all_lanes, CollectiveKind::stmatrix, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { store_matrices(worker, meeting); });
}
