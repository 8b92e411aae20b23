// Values that nothing has written, or that were computed from such.
#pragma once
#include <cstdint>
#include <cstring>

#include <tl/host/engine.h>

#include "basics.h"

namespace tile2cu::engine {

// Types of which a value shows whether anything has written it.
enum class Element : std::uint8_t { opaque, half, bfloat16, float32, float64, int32 };

inline Element element_of(int type) {
  switch (type) {
    case TL_ENGINE_HALF:
      return Element::half;
    case TL_ENGINE_BFLOAT16:
      return Element::bfloat16;
    case TL_ENGINE_FLOAT:
      return Element::float32;
    case TL_ENGINE_DOUBLE:
      return Element::float64;
    default:
      return Element::opaque;
  }
}

constexpr int bytes_of(Element element) {
  return element == Element::opaque                                 ? 1
         : element == Element::half || element == Element::bfloat16 ? 2
         : element == Element::float64                              ? 8
                                                                    : 4;
}

template <class Bits> bool is_quieted(const void* value, Bits unwritten, Bits quiet) {
  constexpr Bits sign = Bits(Bits(1) << (8 * sizeof(Bits) - 1));
  Bits bits;
  std::memcpy(&bits, value, sizeof bits);
  return Bits((bits & Bits(~sign)) | quiet) == Bits(unwritten | quiet);
}

// Whether a value is what tl::host::mark_unwritten left there, or what arithmetic makes of that.
inline bool is_unwritten(const void* value, Element element) {
  switch (element) {
    case Element::half:
      return is_quieted<std::uint16_t>(value, TL_ENGINE_UNWRITTEN_HALF, 0x200);
    case Element::bfloat16:
      return is_quieted<std::uint16_t>(value, TL_ENGINE_UNWRITTEN_BFLOAT16, 0x40);
    case Element::float32:
      return is_quieted<std::uint32_t>(value, TL_ENGINE_UNWRITTEN, 0x400000);
    case Element::float64:
      return is_quieted<std::uint64_t>(value, TL_ENGINE_UNWRITTEN_DOUBLE, std::uint64_t(1) << 51);
    case Element::int32: {
      const std::uint32_t unwritten = TL_ENGINE_UNWRITTEN;
      return std::memcmp(value, &unwritten, sizeof unwritten) == 0;
    }
    default:
      return false;
  }
}

inline bool has_unwritten(const void* values, std::size_t count, Element element) {
  const auto* value = static_cast<const std::uint8_t*>(values);
  for (std::size_t i = 0; i < count; ++i, value += bytes_of(element)) {
    if (is_unwritten(value, element)) return true;
  }
  return false;
}

struct Worker;
// Reports an MMA at `site` that adds to accumulators of the calling thread which nothing has written.
void check_accumulators(Worker& worker, const void* accumulators, int count, Element element, Site site);

}  // namespace tile2cu::engine
