// Loads from a buffer: an address that all lanes share, in scalar registers, and 32 bits of offset in each lane.
// [AMD Instinct MI300 ISA, "Vector Memory Buffer Instructions": addressing and range checking of raw buffers]
#pragma once
#include "kernel.h"

namespace tl {

// How far offsets reach.
constexpr int64_t buffer_bytes = int64_t(1) << 31;

// The 4, 8 or 16 bytes at start + offset, or zeros where they are not among the first `bytes`: the hardware compares, and
// neither a branch nor a vector instruction is needed. `start` and `bytes` are the same in all lanes. Any thread.
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

}  // namespace tl
