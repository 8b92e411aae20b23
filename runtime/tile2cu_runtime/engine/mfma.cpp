// AMD matrix instructions and copies to LDS, for wave64 kernels.
//
// v_mfma_f32_32x32x8f16 and 16x16x16f16: lane l holds row (A) or column (B) l % size and four consecutive k from
// 4 * (l / size); result register v holds column l % size, row 8 * (v / 4) + 4 * (l / 32) + v % 4 for size 32,
// 4 * (l / 16) + v for size 16.  [AMD CDNA3 ISA, and amd_matrix_instruction_calculator]
#include <cstring>

#include "matrix_product.h"
#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int lanes = 64, elements_per_lane = 4;

struct MfmaArgument {
  float* d;
  const void* a;
  const void* b;
};

int result_index(int lane, int v, int size) {
  const int row = size == 32 ? 8 * (v / 4) + 4 * (lane / 32) + v % 4 : 4 * (lane / 16) + v;
  return row * size + lane % size;
}

template <int size> void mfma(const Meeting& meeting, int type) {
  constexpr int k = lanes / size * elements_per_lane, registers = size * size / lanes;
  std::uint16_t a[size * k], b[k * size];
  float c[size * size];
  const auto argument = [&](int lane) { return static_cast<const MfmaArgument*>(meeting.arguments[lane]); };
  for (int lane = 0; lane < lanes; ++lane) {
    const int first = lane / size * elements_per_lane, position = lane % size;
    std::uint16_t column[elements_per_lane];
    std::memcpy(&a[position * k + first], argument(lane)->a, sizeof column);
    std::memcpy(column, argument(lane)->b, sizeof column);
    for (int e = 0; e < elements_per_lane; ++e) b[(first + e) * size + position] = column[e];
    for (int v = 0; v < registers; ++v) c[result_index(lane, v, size)] = argument(lane)->d[v];
  }
  float wide_a[size * k], wide_b[k * size];
  widen(wide_a, a, size * k, type);
  widen(wide_b, b, k * size, type);
  multiply_add<size, size, k>(c, wide_a, wide_b);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int v = 0; v < registers; ++v) argument(lane)->d[v] = c[result_index(lane, v, size)];
  }
}

// The destination is the first lane's base plus lane * bytes: the base must be the same in all lanes.
void agree_on_base(Worker& worker, const Meeting& meeting) {
  const auto base = [&](int lane) { return static_cast<void**>(meeting.arguments[lane]); };
  void* first = *base(__builtin_ctzll(meeting.arrived));
  for_each_lane(meeting.arrived, [&](int lane) {
    if (*base(lane) != first) {
      worker.report("global_load_lds base not wave-uniform", {meeting.site},
                    [&] { return text("lane %d gives another LDS base at {0}", lane); });
    }
    *base(lane) = first;
  });
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_mfma(float* d, const void* a, const void* b, int size, int type) {
  MfmaArgument argument{d, a, b};
  warp_collective(current_worker(), all_lanes, CollectiveKind::mfma, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { size == 32 ? mfma<32>(meeting, type) : mfma<16>(meeting, type); });
}

// Completes at s_waitcnt vmcnt: each load is a cp.async group of its own.
void tl_engine_global_load_lds(void* lds, const void* from, int bytes) {
  Worker& worker = current_worker();
  warp_collective(worker, all_lanes, CollectiveKind::global_load_lds, &lds, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { agree_on_base(worker, meeting); });
  Thread& self = *worker.current;
  self.copies.issue(worker, {static_cast<char*>(lds) + self.lane * bytes, static_cast<const char*>(from),
                             std::uint32_t(bytes), std::uint32_t(bytes), TILE2CU_CALL_SITE});
  self.copies.commit();
}

void tl_engine_wait_vector_memory(int operations_left) {
  Worker& worker = current_worker();
  worker.current->copies.wait(worker, operations_left);
}

}  // extern "C"
