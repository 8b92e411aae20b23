#include "unwritten.h"

#include "matrix_product.h"
#include "worker.h"

namespace tile2cu::engine {

void check_accumulators(Worker& worker, const void* accumulators, int count, Element element, Site site) {
  if (!worker.options.check || !has_unwritten(accumulators, std::size_t(count), element)) return;
  worker.report("uninitialised accumulator", {site},
                [] { return std::string("the MMA at {0} accumulates onto an unwritten accumulator: clear it first"); });
}

void mark_computed(float* results, int count) {
  if (!has_special(results, count)) return;
  for (int i = 0; i < count; ++i) {
    if (!is_unwritten(results + i, Element::float32)) continue;
    const std::uint32_t computed = 0x7fc00000 | TL_ENGINE_PAYLOAD_COMPUTED << 16;
    std::memcpy(results + i, &computed, sizeof computed);
  }
}

void mark_computed(double* results, int count) {
  for (int i = 0; i < count; ++i) {
    if (!is_unwritten(results + i, Element::float64)) continue;
    const std::uint64_t computed = 0x7ff8000000000000 | std::uint64_t(TL_ENGINE_PAYLOAD_COMPUTED) << 45;
    std::memcpy(results + i, &computed, sizeof computed);
  }
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_check_accumulators(const void* accumulators, int count, int type) {
  check_accumulators(current_worker(), accumulators, count, element_of(type), TILE2CU_CALL_SITE);
}

void tl_engine_mark_computed(void* accumulators, int count, int type) {
  if (type == TL_ENGINE_FLOAT) mark_computed(static_cast<float*>(accumulators), count);
  if (type == TL_ENGINE_DOUBLE) mark_computed(static_cast<double*>(accumulators), count);
}

void tl_engine_operand_reads(int begins) { current_worker().current->reads_operands = begins != 0; }

void tl_engine_set_element_type(void* memory, int type) {
  GlobalMemory::instance().set_element_type(memory, element_of(type));
}

}  // extern "C"
