// Atomic operations on global or shared memory, relaxed: they order no other memory access. Any thread. Each returns
// the previous value. [clang, "HIP Support: __hip_atomic_*"]
#pragma once
#include <type_traits>
#include "../common/bits_of.h"
#include "kernel.h"
#include "numeric.h"

namespace tl {

// *to = update(*to), by a compare-and-swap loop.
template <class T, class Update> TL_DEVICE T atomic_update(T* to, const Update& update) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  Bits* const word = reinterpret_cast<Bits*>(to);
  Bits seen = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT), wanted;
  do {
    wanted = __builtin_bit_cast(Bits, update(__builtin_bit_cast(T, seen)));
  } while (!__hip_atomic_compare_exchange_strong(word, &seen, wanted, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                                 __HIP_MEMORY_SCOPE_AGENT));
  return __builtin_bit_cast(T, seen);
}

// Replaces the bits of a byte that `mask` selects by those of `bits`; other threads may write the other bits
// concurrently.
TL_DEVICE void replace_bits(uint8_t* byte, uint8_t mask, uint8_t bits) {
  const auto address = reinterpret_cast<uintptr_t>(byte);
  uint32_t* const word = reinterpret_cast<uint32_t*>(address & ~uintptr_t(3));
  const int shift = static_cast<int>(address & 3) * 8;
  __hip_atomic_fetch_and(word, ~(uint32_t(mask) << shift), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_or(word, uint32_t(bits & mask) << shift, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Relaxed atomic load and store of one element.
template <class T> TL_DEVICE T load_atomically(const T* from) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  const Bits* const word = reinterpret_cast<const Bits*>(from);
  return __builtin_bit_cast(T, __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT));
}
template <class T> TL_DEVICE void store_atomically(T* to, T value) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  Bits* const word = reinterpret_cast<Bits*>(to);
  __hip_atomic_store(word, __builtin_bit_cast(Bits, value), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// A device-scope fence: orders this thread's memory accesses before it and after it.
// [LLVM, "User Guide for AMDGPU Backend: Memory Model", fence]
TL_DEVICE void memory_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }

// float, double, 32-bit and 64-bit integers; 16-bit types use a compare-and-swap loop.
template <class T> TL_DEVICE T atomic_add(T* to, T value) {
  if constexpr (sizeof(T) == 2)
    return atomic_update(to, [&](T before) { return T(before + value); });
  else
    return __hip_atomic_fetch_add(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

#define TL_HIP_ATOMIC(name, function, expression)                             \
  template <class T> TL_DEVICE T name(T* to, T value) {                       \
    if constexpr (sizeof(T) == 2)                                             \
      return atomic_update(to, [&](T before) { return T(expression); });      \
    else                                                                      \
      return function(to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \
  }
TL_HIP_ATOMIC(atomic_max, __hip_atomic_fetch_max, before < value ? value : before)
TL_HIP_ATOMIC(atomic_min, __hip_atomic_fetch_min, value < before ? value : before)
TL_HIP_ATOMIC(atomic_and, __hip_atomic_fetch_and, before& value)
TL_HIP_ATOMIC(atomic_or, __hip_atomic_fetch_or, before | value)
TL_HIP_ATOMIC(atomic_xor, __hip_atomic_fetch_xor, before ^ value)
#undef TL_HIP_ATOMIC

// Additions to consecutive elements, aligned to their total size; each element's addition is atomic, the vector's is
// not.
TL_DEVICE void atomic_add_2(float* to, uint2 bits) {
  atomic_add(to, __builtin_bit_cast(float, bits.x));
  atomic_add(to + 1, __builtin_bit_cast(float, bits.y));
}
TL_DEVICE void atomic_add_4(float* to, uint4 bits) {
  atomic_add_2(to, make_uint2(bits.x, bits.y));
  atomic_add_2(to + 2, make_uint2(bits.z, bits.w));
}
template <class T> TL_DEVICE void atomic_add_2(T* to, uint32_t pair) {
  atomic_add(to, __builtin_bit_cast(T, static_cast<uint16_t>(pair)));
  atomic_add(to + 1, __builtin_bit_cast(T, static_cast<uint16_t>(pair >> 16)));
}

}  // namespace tl
