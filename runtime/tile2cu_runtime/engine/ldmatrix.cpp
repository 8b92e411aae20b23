// ldmatrix: loads 8x8 matrices of 16-bit elements from shared memory to the registers of a warp.
// Lane l passes the address of row l % 8 of matrix l / 8, and receives elements 2 * (l % 4) and the next of row l / 4
// of each matrix, or of its transpose. [PTX ISA, ldmatrix]
#include <cstring>

#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int lanes = 32, row_bytes = 16;
using Matrix = std::uint16_t[8][8];

struct LdmatrixArgument {
  std::uint32_t* registers;
  const void* row;
};

const LdmatrixArgument& of(const Meeting& meeting, int lane) {
  return *static_cast<const LdmatrixArgument*>(meeting.arguments[lane]);
}

void check_row(Worker& worker, const Meeting& meeting, int lane) {
  const void* row = of(meeting, lane).row;
  if (TILE2CU_UNLIKELY(reinterpret_cast<std::uintptr_t>(row) % row_bytes)) {
    worker.report("misaligned ldmatrix", {meeting.site},
                  [&] { return text("lane %d of ldmatrix at {0}: its row is not 16-byte aligned", lane); });
  }
  if (!worker.options.check) return;
  if (TILE2CU_UNLIKELY(!worker.is_shared(row))) {
    worker.report("ldmatrix from non-shared address", {meeting.site},
                  [&] { return text("lane %d of ldmatrix at {0}", lane); });
    return;
  }
  const auto thread = ThreadNumber(worker.current->warp * lanes + lane);
  const Clock* knows = worker.clocks.row(thread);
  const auto offset = std::uint32_t(worker.shared_offset(row));
  MemoryAccess access{thread, knows, knows[thread], meeting.site};
  access.is_operand = worker.current->reads_operands;
  worker.shadow_at(offset).read(worker, offset, row_bytes, access);
}

void count_request(Worker& worker, const Meeting& meeting, int rows) {
  LaneAddresses addresses{};
  for (int lane = 0; lane < rows; ++lane) addresses[lane] = worker.shared_offset(of(meeting, lane).row);
  const std::uint64_t mask = (std::uint64_t(1) << rows) - 1;
  worker.requests.warp_access({meeting.site, false, true}, row_bytes, addresses, mask);
}

void load_matrices(Worker& worker, const Meeting& meeting, int matrices, bool transposed) {
  Matrix matrix[4];
  for (int lane = 0; lane < matrices * 8; ++lane) {
    check_row(worker, meeting, lane);
    std::memcpy(matrix[lane / 8][lane % 8], of(meeting, lane).row, row_bytes);
  }
  if (worker.options.statistics) count_request(worker, meeting, matrices * 8);
  for (int lane = 0; lane < lanes; ++lane) {
    const int row = lane / 4, column = lane % 4 * 2;
    for (int number = 0; number < matrices; ++number) {
      const Matrix& m = matrix[number];
      const std::uint32_t low = transposed ? m[column][row] : m[row][column];
      const std::uint32_t high = transposed ? m[column + 1][row] : m[row][column + 1];
      of(meeting, lane).registers[number] = low | high << 16;
    }
  }
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" void tl_engine_ldmatrix(std::uint32_t* registers, const void* row, int matrices, int transposed) {
  Worker& worker = current_worker();
  LdmatrixArgument argument{registers, row};
  warp_collective(worker, all_lanes, CollectiveKind::ldmatrix, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { load_matrices(worker, meeting, matrices, transposed != 0); });
}
