// Unwritten values, and results computed from them.
#pragma once
#include <cstdint>
#include <cstring>

#include <tl/host/engine.h>

#include "basics.h"

namespace tile2cu::engine {

// Element types that have a marker for unwritten values.
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
    case TL_ENGINE_INT32:
      return Element::int32;
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

// The six payload bits of a NaN below its quiet bit; 0 of other values. `infinity` has the exponent of a NaN.
template <class Bits> int payload_of(const void* value, Bits infinity, int shift) {
  Bits bits;
  std::memcpy(&bits, value, sizeof bits);
  return (bits & infinity) == infinity ? int(bits >> shift & 0x3f) : 0;
}
inline int payload_of(const void* value, Element element) {
  switch (element) {
    case Element::half:
      return payload_of<std::uint16_t>(value, 0x7c00, 3);
    case Element::bfloat16:
      return payload_of<std::uint16_t>(value, 0x7f80, 0);
    case Element::float32:
      return payload_of<std::uint32_t>(value, 0x7f800000, 16);
    case Element::float64:
      return payload_of<std::uint64_t>(value, 0x7ff0000000000000, 45);
    default:
      return 0;
  }
}

// Whether nothing has written a value, or it was computed from one that nothing has written, but not by an MMA.
inline bool is_unwritten(const void* value, Element element) {
  if (element != Element::int32) return payload_of(value, element) == TL_ENGINE_PAYLOAD_UNWRITTEN;
  const std::uint32_t unwritten = TL_ENGINE_UNWRITTEN;
  return std::memcmp(value, &unwritten, sizeof unwritten) == 0;
}
// The same, also by an MMA.
inline bool depends_on_unwritten(const void* value, Element element) {
  return is_unwritten(value, element) || payload_of(value, element) == TL_ENGINE_PAYLOAD_COMPUTED;
}

template <class Test> bool any_of(const void* values, std::size_t count, Element element, const Test& test) {
  const auto* value = static_cast<const std::uint8_t*>(values);
  for (std::size_t i = 0; i < count; ++i, value += bytes_of(element)) {
    if (test(value, element)) return true;
  }
  return false;
}
inline bool has_unwritten(const void* values, std::size_t count, Element element) {
  return any_of(values, count, element, is_unwritten);
}
inline bool has_dependent(const void* values, std::size_t count, Element element) {
  return any_of(values, count, element, depends_on_unwritten);
}

// What an MMA computed: accumulators are written now, and depend on unwritten operands.
void mark_computed(float* results, int count);
void mark_computed(double* results, int count);

struct Worker;
// Reports an MMA at `site` that accumulates onto unwritten accumulators of the calling thread.
void check_accumulators(Worker& worker, const void* accumulators, int count, Element element, Site site);

}  // namespace tile2cu::engine
