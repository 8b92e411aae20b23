// Loads and stores of a given width, and shared memory. Any thread; no memory ordering.
#pragma once
#include "kernel.h"
#include "numeric.h"

namespace tl {

// The block's dynamic shared memory, aligned to the period of the widest swizzle (8 rows of 128 bytes).
TL_DEVICE void* shared_memory() {
  extern __shared__ __align__(1024) unsigned char tl_shared_memory[];
#ifdef TL_SHARED_MEMORY_IN_REGISTER  // else compilers may read the address from a special register in each iteration
  auto address = static_cast<uint32_t>(__cvta_generic_to_shared(tl_shared_memory));
  asm("" : "+r"(address));
  return __cvta_shared_to_generic(address);
#else
  return tl_shared_memory;
#endif
}
// The 32-bit shared-window address for PTX instructions with .shared.
TL_DEVICE uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// One load or store of 16, 8, 4 or 2 bytes; the address is aligned to the width.
// [PTX ISA, "Data Movement and Conversion Instructions: ld", "... st"]
TL_DEVICE uint4 load16(const void* from) { return *static_cast<const uint4*>(from); }
TL_DEVICE uint2 load8(const void* from) { return *static_cast<const uint2*>(from); }
TL_DEVICE uint32_t load4(const void* from) { return *static_cast<const uint32_t*>(from); }
TL_DEVICE uint16_t load2(const void* from) { return *static_cast<const uint16_t*>(from); }
TL_DEVICE void store16(void* to, uint4 bits) { *static_cast<uint4*>(to) = bits; }
TL_DEVICE void store8(void* to, uint2 bits) { *static_cast<uint2*>(to) = bits; }
TL_DEVICE void store4(void* to, uint32_t bits) { *static_cast<uint32_t*>(to) = bits; }
TL_DEVICE void store2(void* to, uint16_t bits) { *static_cast<uint16_t*>(to) = bits; }

// 16-byte load from global memory with an L1 and L2 eviction priority; zeros if not `wanted`. The load is predicated: a
// branch would delay the loads after it until the condition is known.
// [PTX ISA, "Data Movement and Conversion Instructions: ld", .level::eviction_priority; "... createpolicy"]
#define TL_LOAD16_EVICT(name, priority)                                                 \
  TL_DEVICE uint4 name(const void* from, bool wanted) {                                 \
    uint64_t policy;                                                                    \
    uint4 bits = {0, 0, 0, 0};                                                          \
    asm("createpolicy.fractional.L2::evict_" #priority ".b64 %0, 1.0;" : "=l"(policy)); \
    asm volatile(                                                                       \
        "{\n\t.reg .pred wanted;\n\tsetp.ne.u32 wanted, %6, 0;\n\t"                     \
        "@wanted ld.global.L1::evict_" #priority                                        \
        ".L2::cache_hint.v4.u32 {%0, %1, %2, %3}, "                                     \
        "[%4], %5;\n\t}"                                                                \
        : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w)                        \
        : "l"(from), "l"(policy), "r"(unsigned(wanted))                                 \
        : "memory");                                                                    \
    return bits;                                                                        \
  }
TL_LOAD16_EVICT(load16_evict_first, first)
TL_LOAD16_EVICT(load16_evict_last, last)
#undef TL_LOAD16_EVICT

}  // namespace tl
