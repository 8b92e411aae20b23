// AMD's loads from a buffer on the CPU engine: guarded loads.
#pragma once
#include "../engine.h"
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

constexpr bool has_loads_to_shared = true;

// Starts to copy the 16 bytes at start + offset, or zeros where they are not among the first `bytes`, to
// lds[place + lane]; all but `offset` is the same in all lanes. They are there once wait_vector_memory has counted
// them. Called by: every lane of the wave.
template <class Bits>
TL_DEVICE void load_to_shared(Bits* lds, int place, const void* start, uint32_t bytes, uint32_t offset) {
  static_assert(sizeof(Bits) == 16, "128 bits a lane");
  const bool inside = uint64_t(offset) + 16 <= bytes;
  tl_engine_global_load_lds(lds + place, static_cast<const char*>(start) + offset, 16, inside ? 16 : 0);
}
// Waits until at most n of this thread's loads are in flight. Any thread; others need a barrier after it.
template <int n> TL_DEVICE void wait_vector_memory() { tl_engine_wait_vector_memory(n); }

}  // namespace tl
