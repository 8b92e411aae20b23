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

// One load or store of 16, 8, 4 or 2 bytes; the address is aligned to the width. The wide ones are of vectors: of a
// uint4, a struct of four words, clang 19 merges the last word's access with one of another branch.
using Words2 = uint32_t __attribute__((ext_vector_type(2)));
using Words4 = uint32_t __attribute__((ext_vector_type(4)));
TL_DEVICE uint4 load16(const void* from) {
  const Words4 words = *static_cast<const Words4*>(from);
  return make_uint4(words.x, words.y, words.z, words.w);
}
TL_DEVICE uint2 load8(const void* from) {
  const Words2 words = *static_cast<const Words2*>(from);
  return make_uint2(words.x, words.y);
}
TL_DEVICE uint32_t load4(const void* from) { return *static_cast<const uint32_t*>(from); }
TL_DEVICE uint16_t load2(const void* from) { return *static_cast<const uint16_t*>(from); }
TL_DEVICE void store16(void* to, uint4 bits) { *static_cast<Words4*>(to) = Words4{bits.x, bits.y, bits.z, bits.w}; }
TL_DEVICE void store8(void* to, uint2 bits) { *static_cast<Words2*>(to) = Words2{bits.x, bits.y}; }
TL_DEVICE void store4(void* to, uint32_t bits) { *static_cast<uint32_t*>(to) = bits; }
TL_DEVICE void store2(void* to, uint16_t bits) { *static_cast<uint16_t*>(to) = bits; }

// CDNA has no such eviction priorities.
TL_DEVICE uint4 load16_evict_first(const void* from, bool wanted) { return wanted ? load16(from) : uint4{}; }
TL_DEVICE uint4 load16_evict_last(const void* from, bool wanted) { return load16_evict_first(from, wanted); }

}  // namespace tl
