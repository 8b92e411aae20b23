// Accumulators that nothing has written before an MMA adds to them.
#pragma once
#include <cstdint>
#include <cstring>

#include <tl/host/engine.h>

#include "worker.h"

namespace tile2cu::engine {

// Whether a register of `bytes` holds what tl::host::mark_unwritten left there, or what arithmetic on floats makes of
// that.
inline bool is_unwritten(const void* accumulator, int bytes) {
  if (bytes == 2) {
    const std::uint16_t unwritten = TL_ENGINE_UNWRITTEN_HALF;
    return std::memcmp(accumulator, &unwritten, sizeof unwritten) == 0;
  }
  std::uint32_t bits;
  std::memcpy(&bits, accumulator, sizeof bits);
  return (bits | TL_ENGINE_QUIET) == (TL_ENGINE_UNWRITTEN | TL_ENGINE_QUIET);
}

// Reports an MMA at `site` that adds to registers which nothing has written, or which were computed from such: `count`
// accumulators of the calling thread, of `bytes` each.
inline void check_accumulators(Worker& worker, const void* accumulators, int count, int bytes, Site site) {
  if (!worker.options.check) return;
  const auto* place = static_cast<const std::uint8_t*>(accumulators);
  for (int i = 0; i < count; ++i, place += bytes) {
    if (!is_unwritten(place, bytes)) continue;
    worker.report("uninitialised accumulator", {site}, [] {
      return std::string("the MMA at {0} adds to an accumulator that nothing has written: clear it first");
    });
    return;
  }
}

}  // namespace tile2cu::engine
