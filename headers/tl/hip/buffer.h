// Loads from a buffer: an address that all lanes share, in scalar registers, and 32 bits of offset in each lane.
// [AMD Instinct MI300 ISA, "Vector Memory Buffer Instructions": addressing and range checking of raw buffers]
#pragma once
#include "kernel.h"

namespace tl {

// How far offsets reach.
constexpr int64_t buffer_bytes = int64_t(1) << 31;

// The 4, 8 or 16 bytes at start + offset, or zeros where they are not among the first `bytes`: the hardware compares,
// and neither a branch nor a vector instruction is needed. `start` and `bytes` are the same in all lanes. Any thread.
template <class Bits> TL_DEVICE Bits load_inside(const void* start, uint32_t bytes, uint32_t offset) {
  constexpr int raw_bits_of_32 = 0x27000;  // the buffer's format: NUM_FORMAT float, DATA_FORMAT 32
  const auto buffer =
      __builtin_amdgcn_make_buffer_rsrc(const_cast<void*>(start), 0, static_cast<int>(bytes), raw_bits_of_32);
  const int at = static_cast<int>(offset);
  if constexpr (sizeof(Bits) == 16)
    return __builtin_bit_cast(Bits, __builtin_amdgcn_raw_buffer_load_b128(buffer, at, 0, 0));
  else if constexpr (sizeof(Bits) == 8)
    return __builtin_bit_cast(Bits, __builtin_amdgcn_raw_buffer_load_b64(buffer, at, 0, 0));
  else
    return __builtin_bit_cast(Bits, __builtin_amdgcn_raw_buffer_load_b32(buffer, at, 0, 0));
}

// Whether load_to_shared is there.
#if defined(__gfx950__)
constexpr bool has_loads_to_shared = true;
#else
constexpr bool has_loads_to_shared = false;
#endif

// Starts to copy the 16 bytes at start + offset, or zeros where they are not among the first `bytes`, to
// lds[place + lane], past the registers. All but `offset` is the same in all lanes. The bytes are there once
// wait_vector_memory has counted this load; the compiler does not know of it, so that it waits for nothing by itself.
// Called by: every lane of the wave. [AMD CDNA4 ISA, "Memory Buffer Load to LDS": M0, 128 bits; "Manually Inserted Wait
// States": one between the write of M0 and its use]
#if defined(__gfx950__)
template <class Bits>
TL_DEVICE void load_to_shared(Bits* lds, int place, const void* start, uint32_t bytes, uint32_t offset) {
  static_assert(sizeof(Bits) == 16, "128 bits a lane");
  using Resource = uint32_t __attribute__((ext_vector_type(4)));
  using Lds = __attribute__((address_space(3))) const Bits*;
  constexpr uint32_t raw_bits_of_32 = 0x27000;
  const auto address = reinterpret_cast<uintptr_t>(start);
  const auto uniform = [](uint64_t word) { return uint32_t(__builtin_amdgcn_readfirstlane(static_cast<int>(word))); };
  const Resource buffer = {uniform(address), uniform(address >> 32 & 0xffff), uniform(bytes), raw_bits_of_32};
  const uint32_t first = uniform(reinterpret_cast<uintptr_t>((Lds)lds)) + uint32_t(place) * 16;
  asm volatile("s_mov_b32 m0, %0\n\ts_nop 0\n\tbuffer_load_dwordx4 %1, %2, 0 offen lds"
               :
               : "s"(first), "v"(offset), "s"(buffer)
               : "m0", "memory");
}
#else
template <class Bits> TL_DEVICE void load_to_shared(Bits*, int, const void*, uint32_t, uint32_t) {
  static_assert(hip::lacks<Bits>, "before gfx950 a load to shared memory brings 4 bytes: tl::load and tl::store");
}
#endif

// Waits until at most n of this thread's loads are in flight, which come back in the order in which they were started.
// Any thread; others need a barrier after it. [AMD CDNA4 ISA, "S_WAITCNT": vmcnt has 6 bits]
template <int n> TL_DEVICE void wait_vector_memory() {
  asm volatile("s_waitcnt vmcnt(%0)" : : "n"(n < 63 ? n : 63) : "memory");
}

}  // namespace tl
