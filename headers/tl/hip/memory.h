// Loads and stores of a given width, and shared memory (LDS). Any thread; no memory ordering.
#pragma once
#include "kernel.h"
#include "numeric.h"

namespace tl {

// The block's dynamic shared memory, aligned to the period of the widest swizzle (8 rows of 128 bytes).
TL_DEVICE void* shared_memory() {
  extern __shared__ __align__(1024) unsigned char tl_shared_memory[];
  return tl_shared_memory;
}

// One load or store of 16, 8, 4 or 2 bytes; the address is aligned to the width.
TL_DEVICE uint4 load16(const void* from) { return *static_cast<const uint4*>(from); }
TL_DEVICE uint2 load8(const void* from) { return *static_cast<const uint2*>(from); }
TL_DEVICE uint32_t load4(const void* from) { return *static_cast<const uint32_t*>(from); }
TL_DEVICE uint16_t load2(const void* from) { return *static_cast<const uint16_t*>(from); }
TL_DEVICE void store16(void* to, uint4 bits) { *static_cast<uint4*>(to) = bits; }
TL_DEVICE void store8(void* to, uint2 bits) { *static_cast<uint2*>(to) = bits; }
TL_DEVICE void store4(void* to, uint32_t bits) { *static_cast<uint32_t*>(to) = bits; }
TL_DEVICE void store2(void* to, uint16_t bits) { *static_cast<uint16_t*>(to) = bits; }

// CDNA has no such eviction priorities.
TL_DEVICE uint4 load16_evict_first(const void* from, bool wanted) { return wanted ? load16(from) : uint4{}; }
TL_DEVICE uint4 load16_evict_last(const void* from, bool wanted) { return load16_evict_first(from, wanted); }

}  // namespace tl
