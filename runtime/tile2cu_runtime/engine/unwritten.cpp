#include "unwritten.h"

#include "worker.h"

namespace tile2cu::engine {

void check_accumulators(Worker& worker, const void* accumulators, int count, Element element, Site site) {
  if (!worker.options.check || !has_unwritten(accumulators, std::size_t(count), element)) return;
  worker.report("uninitialised accumulator", {site}, [] {
    return std::string("the MMA at {0} adds to an accumulator that nothing has written: clear it first");
  });
}

}  // namespace tile2cu::engine

using namespace tile2cu::engine;

extern "C" {

void tl_engine_check_accumulators(const void* accumulators, int count, int type) {
  check_accumulators(current_worker(), accumulators, count, element_of(type), TILE2CU_CALL_SITE);
}

void tl_engine_set_element_type(void* memory, int type) {
  GlobalMemory::instance().set_element_type(memory, element_of(type));
}

}  // extern "C"
