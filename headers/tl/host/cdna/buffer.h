// AMD's buffer loads on the CPU engine, as bounds-checked loads.
#pragma once
#include "../engine.h"
#include "../memory.h"
#include "../../common/packet.h"

namespace tl {

// The largest extent of a buffer in bytes: offsets are below 2^31.
constexpr int64_t buffer_bytes = int64_t(1) << 31;

// Loads 4, 8 or 16 bytes at start + offset, or zeros if they are not within the first `bytes`. Any thread.
template <class Bits> TL_DEVICE Bits load_inside(const void* start, uint32_t bytes, uint32_t offset) {
  return uint64_t(offset) + sizeof(Bits) <= bytes
             ? load_bits<sizeof(Bits), Bits>(static_cast<const char*>(start) + offset)
             : Bits{};
}

constexpr bool has_loads_to_shared = true;

// Issues a 16-byte load per lane from global to shared memory: from start + offset, or zeros if that is not within the
// first `bytes`, to lds[place + lane]. All arguments except `offset` are uniform. The bytes have arrived after a
// wait_vector_memory that covers this load. Called by: every lane of the wave.
template <class Bits>
TL_DEVICE void load_to_shared(Bits* lds, int place, const void* start, uint32_t bytes, uint32_t offset) {
  static_assert(sizeof(Bits) == 16, "128 bits per lane");
  const bool inside = uint64_t(offset) + 16 <= bytes;
  tl_engine_global_load_lds(lds + place, static_cast<const char*>(start) + offset, 16, inside ? 16 : 0);
}
// Waits until at most n of this thread's loads are outstanding. Any thread; a barrier after it makes the bytes visible
// to other threads.
template <int n> TL_DEVICE void wait_vector_memory() { tl_engine_wait_vector_memory(n); }

}  // namespace tl
