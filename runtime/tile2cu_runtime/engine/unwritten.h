// Accumulators that nothing has written before an MMA adds to them.
#pragma once
#include <cstdint>
#include <cstring>

#include <tl/host/engine.h>

#include "worker.h"

namespace tile2cu::engine {

// Reports an MMA at `site` that adds to registers which still hold what tl::host::mark_unwritten left there: `count`
// accumulators of the calling thread, of `bytes` each.
inline void check_accumulators(Worker& worker, const void* accumulators, int count, int bytes, Site site) {
  if (!worker.options.check) return;
  const std::uint32_t bits = bytes == 2 ? TL_ENGINE_UNWRITTEN_HALF : TL_ENGINE_UNWRITTEN;
  const auto* place = static_cast<const std::uint8_t*>(accumulators);
  for (int i = 0; i < count; ++i, place += bytes) {
    if (std::memcmp(place, &bits, bytes) != 0) continue;
    worker.report("uninitialised accumulator", {site}, [] {
      return std::string("the MMA at {0} adds to an accumulator that nothing has written: clear it first");
    });
    return;
  }
}

}  // namespace tile2cu::engine
