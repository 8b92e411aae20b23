// Buffer loads: a uniform base address in scalar registers, and a 32-bit offset per lane.
// [AMD Instinct MI300 ISA, "Vector Memory Buffer Instructions": addressing and range checking of raw buffers]
#pragma once
#include "kernel.h"

namespace tl {

// The largest extent of a buffer in bytes: offsets are below 2^31.
constexpr int64_t buffer_bytes = int64_t(1) << 31;

// Loads 4, 8 or 16 bytes at start + offset, or zeros if they are not within the first `bytes`: the hardware checks the
// range, without a branch or a vector instruction. `start` and `bytes` are uniform. Any thread.
template <class Bits> TL_DEVICE Bits load_inside(const void* start, uint32_t bytes, uint32_t offset) {
  constexpr int raw_bits_of_32 = 0x27000;  // word 3 of the descriptor: NUM_FORMAT float, DATA_FORMAT 32
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

// Whether the target has load_to_shared.
#if defined(__gfx950__)
constexpr bool has_loads_to_shared = true;
#else
constexpr bool has_loads_to_shared = false;
#endif

// Issues a 16-byte load per lane from global memory to LDS, without registers: from start + offset, or zeros if that is
// not within the first `bytes`, to lds[place + lane]. All arguments except `offset` are uniform. The bytes have arrived
// after a wait_vector_memory that covers this load; the compiler inserts no wait for it.
// Called by: every lane of the wave. [AMD CDNA4 ISA, "Memory Buffer Load to LDS": M0, 128 bits; "Manually Inserted Wait
// States": one between the write of M0 and its use]
#if defined(__gfx950__)
template <class Bits>
TL_DEVICE void load_to_shared(Bits* lds, int place, const void* start, uint32_t bytes, uint32_t offset) {
  static_assert(sizeof(Bits) == 16, "128 bits per lane");
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
  static_assert(hip::lacks<Bits>, "loads to LDS have 4 bytes before gfx950: use tl::load and tl::store");
}
#endif

// Waits until at most n of this wave's vector-memory loads are outstanding; they return in the order of issue. Any
// thread; a barrier after it makes the bytes visible to other waves. [AMD CDNA4 ISA, "S_WAITCNT": vmcnt has 6 bits]
template <int n> TL_DEVICE void wait_vector_memory() {
  asm volatile("s_waitcnt vmcnt(%0)" : : "n"(n < 63 ? n : 63) : "memory");
}

}  // namespace tl
