// AMD's loads from a buffer on the CPU engine: guarded loads.
#pragma once
#include "../memory.h"
#include "../../common/packet.h"

namespace tl {

// How far offsets reach.
constexpr int64_t buffer_bytes = int64_t(1) << 31;

// The 4, 8 or 16 bytes at start + offset, or zeros where they are not among the first `bytes`. Any thread.
template <class Bits> TL_DEVICE Bits load_inside(const void* start, uint32_t bytes, uint32_t offset) {
  return uint64_t(offset) + sizeof(Bits) <= bytes
             ? load_bits<sizeof(Bits), Bits>(static_cast<const char*>(start) + offset)
             : Bits{};
}

}  // namespace tl
