// MFMA and LDS loads, for wave64 kernels.
// Lane l holds row (A) or column (B) l % size, and n consecutive k from n * (l / size) on; result v is in column l %
// size, row 4 * (l / size + 64 / size * (v / 4)) + v % 4, for double in row l / size + 4 v.
// [AMD CDNA3 ISA, and amd_matrix_instruction_calculator]
#include <cstring>

#include <tl/host/numeric.h>

#include "unwritten.h"
#include "worker.h"

namespace tile2cu::engine {
namespace {

constexpr int lanes = 64, most_items = 16;

struct MfmaArgument {
  void* d;
  const void* a;
  const void* b;
};

template <class T> T at(const void* items, int index) {
  T item;
  std::memcpy(&item, static_cast<const char*>(items) + index * sizeof item, sizeof item);
  return item;
}

// Converts an operand to the type of the computation.
template <class Wide> Wide operand(const void* items, int index, int type) {
  switch (type) {
    case TL_ENGINE_HALF:
      return Wide(tl::host::half_to_float(at<std::uint16_t>(items, index)));
    case TL_ENGINE_BFLOAT16:
      return Wide(tl::host::bfloat16_to_float(at<std::uint16_t>(items, index)));
    case TL_ENGINE_INT8:
      return Wide(at<std::int8_t>(items, index));
    case TL_ENGINE_FLOAT:
      return Wide(at<float>(items, index));
    default:
      return Wide(at<double>(items, index));
  }
}

template <class Wide, int size> int result_index(int lane, int v) {
  constexpr int run = sizeof(Wide) == 8 ? 1 : 4, groups = lanes / size;
  const int row = run * (lane / size + groups * (v / run)) + v % run;
  return row * size + lane % size;
}

// Accumulates in ascending k; the order and rounding of the hardware differ.
template <class Wide, int size> void mfma(const Meeting& meeting, int n, int type) {
  constexpr int results = size * size / lanes, most_k = lanes / size * most_items;
  Wide a[size * most_k], b[most_k * size], d[size * size];
  const int k = lanes / size * n;
  const auto argument = [&](int lane) { return static_cast<const MfmaArgument*>(meeting.arguments[lane]); };
  for (int lane = 0; lane < lanes; ++lane) {
    for (int item = 0; item < n; ++item) {
      const int inner = lane / size * n + item;
      a[lane % size * k + inner] = operand<Wide>(argument(lane)->a, item, type);
      b[inner * size + lane % size] = operand<Wide>(argument(lane)->b, item, type);
    }
    for (int v = 0; v < results; ++v) d[result_index<Wide, size>(lane, v)] = at<Wide>(argument(lane)->d, v);
  }
  for (int row = 0; row < size; ++row) {
    for (int inner = 0; inner < k; ++inner) {
      const Wide scalar = a[row * k + inner];
      for (int column = 0; column < size; ++column) d[row * size + column] += scalar * b[inner * size + column];
    }
  }
  if constexpr (std::is_floating_point<Wide>::value) mark_computed(d, size * size);
  for (int lane = 0; lane < lanes; ++lane) {
    for (int v = 0; v < results; ++v) {
      std::memcpy(static_cast<char*>(argument(lane)->d) + v * sizeof(Wide), &d[result_index<Wide, size>(lane, v)],
                  sizeof(Wide));
    }
  }
}

template <class Wide> void mfma(const Meeting& meeting, int size, int n, int type) {
  size == 32 ? mfma<Wide, 32>(meeting, n, type) : mfma<Wide, 16>(meeting, n, type);
}

// The destination is the first lane's base plus lane * bytes, so the base must be uniform.
void agree_on_base(Worker& worker, const Meeting& meeting) {
  const auto base = [&](int lane) { return static_cast<void**>(meeting.arguments[lane]); };
  void* first = *base(__builtin_ctzll(meeting.arrived));
  for_each_lane(meeting.arrived, [&](int lane) {
    if (*base(lane) != first) {
      worker.report("global_load_lds base not wave-uniform", {meeting.site},
                    [&] { return text("lane %d passes a different LDS base at {0}", lane); });
    }
    *base(lane) = first;
  });
}

}  // namespace
}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_mfma(void* d, const void* a, const void* b, int size, int n, int type) {
  MfmaArgument argument{d, a, b};
  const Element element = type == TL_ENGINE_DOUBLE ? Element::float64
                          : type == TL_ENGINE_INT8 ? Element::int32
                                                   : Element::float32;
  check_accumulators(current_worker(), d, size * size / lanes, element, TILE2CU_CALL_SITE);
  warp_collective(current_worker(), all_lanes, CollectiveKind::mfma, &argument, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) {
                    if (type == TL_ENGINE_INT8) return mfma<std::int32_t>(meeting, size, n, type);
                    if (type == TL_ENGINE_DOUBLE) return mfma<double>(meeting, size, n, type);
                    mfma<float>(meeting, size, n, type);
                  });
}

// Completes at s_waitcnt vmcnt: each load is its own cp.async group.
void tl_engine_global_load_lds(void* lds, const void* from, int bytes, int source_bytes) {
  Worker& worker = current_worker();
  warp_collective(worker, all_lanes, CollectiveKind::global_load_lds, &lds, TILE2CU_CALL_SITE,
                  [&](const Meeting& meeting) { agree_on_base(worker, meeting); });
  Thread& self = *worker.current;
  self.copies.issue(worker, {static_cast<char*>(lds) + self.lane * bytes, static_cast<const char*>(from),
                             std::uint32_t(bytes), std::uint32_t(source_bytes), TILE2CU_CALL_SITE});
  self.copies.commit();
}

void tl_engine_wait_vector_memory(int operations_left) {
  Worker& worker = current_worker();
  worker.current->copies.wait(worker, operations_left);
}

}  // extern "C"
