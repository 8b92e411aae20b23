// Atomic operations on global or shared memory, relaxed: they order no other memory access. Any thread. Each returns
// the previous value; if the result is unused, the compiler emits a reduction (red) instead.
#pragma once
#include "../standard.h"
#include "../common/bits_of.h"
#include "config.h"
#include "kernel.h"
#include "numeric.h"

namespace tl {
namespace cuda {

template <class T> using If16Bit = std::enable_if_t<std::is_integral<T>::value && sizeof(T) == 2, T>;
template <class T> using If64Bit = std::enable_if_t<std::is_integral<T>::value && sizeof(T) == 8, T>;

}  // namespace cuda

// *to = update(*to), by a compare-and-swap loop. A result with the same bits is not written.
// [CUDA C++ Programming Guide, "Atomic Functions: atomicCAS()"]
template <class T, class Update> TL_DEVICE T atomic_update(T* to, const Update& update) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  Bits* const word = reinterpret_cast<Bits*>(to);
  Bits seen = *static_cast<volatile Bits*>(word), expected, wanted;
  T before;
  do {
    expected = seen;
    __builtin_memcpy(static_cast<void*>(&before), &expected, sizeof(T));
    const T after = update(before);
    __builtin_memcpy(&wanted, &after, sizeof(T));
    if (wanted == expected) break;
    seen = atomicCAS(word, expected, wanted);
  } while (seen != expected);
  return before;
}

// Replaces the bits of a byte that `mask` selects by those of `bits`; other threads may write the other bits
// concurrently. CUDA's atomics operate on words, so the aligned word that contains the byte is accessed.
// [CUDA C++ Programming Guide, "Atomic Functions"]
TL_DEVICE void replace_bits(uint8_t* byte, uint8_t mask, uint8_t bits) {
  const auto address = reinterpret_cast<uintptr_t>(byte);
  unsigned* const word = reinterpret_cast<unsigned*>(address & ~uintptr_t(3));
  const int shift = static_cast<int>(address & 3) * 8;
  atomicAnd(word, ~(unsigned(mask) << shift));
  atomicOr(word, unsigned(bits & mask) << shift);
}

// Relaxed atomic load and store of one element.
// [PTX ISA, "ld": ld.volatile has the same memory synchronization semantics as ld.relaxed.sys; and so has st.volatile]
template <class T> TL_DEVICE T load_atomically(const T* from) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  const Bits bits = *reinterpret_cast<const volatile Bits*>(from);
  T now;
  __builtin_memcpy(static_cast<void*>(&now), &bits, sizeof(T));
  return now;
}
template <class T> TL_DEVICE void store_atomically(T* to, T value) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  Bits bits;
  __builtin_memcpy(&bits, &value, sizeof(T));
  *reinterpret_cast<volatile Bits*>(to) = bits;
}
// A device-scope fence: orders this thread's memory accesses before it and after it.
// [CUDA C++ Programming Guide, "Memory Fence Functions"]
TL_DEVICE void memory_fence() { __threadfence(); }

// [CUDA C++ Programming Guide, "Atomic Functions: atomicAdd()"]
TL_DEVICE float atomic_add(float* to, float value) { return atomicAdd(to, value); }
TL_DEVICE double atomic_add(double* to, double value) { return atomicAdd(to, value); }
TL_DEVICE int atomic_add(int* to, int value) { return atomicAdd(to, value); }
TL_DEVICE unsigned atomic_add(unsigned* to, unsigned value) { return atomicAdd(to, value); }
TL_DEVICE half atomic_add(half* to, half value) {
  uint16_t before, bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(before) : "l"(to), "h"(bits) : "memory");
  __builtin_memcpy(static_cast<void*>(&value), &before, sizeof before);
  return value;
}
// atom.add.noftz.bf16 requires sm_90. [PTX ISA, "Parallel Synchronization and Communication Instructions: atom"]
TL_DEVICE bfloat16 atomic_add(bfloat16* to, bfloat16 value) {
  if constexpr (cuda::architecture >= 90) {
    uint16_t before;
    asm volatile("atom.add.noftz.bf16 %0, [%1], %2;" : "=h"(before) : "l"(to), "h"(value.bits) : "memory");
    return bfloat16::from_bits(before);
  } else {
    return atomic_update(to, [&](bfloat16 before) { return before + value; });
  }
}
template <class T> TL_DEVICE cuda::If64Bit<T> atomic_add(T* to, T value) {
  return static_cast<T>(atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value)));
}

// 16-bit integers: no instructions, a compare-and-swap loop.
#define TL_CUDA_ATOMIC_16(name, expression)                            \
  template <class T> TL_DEVICE cuda::If16Bit<T> name(T* to, T value) { \
    return atomic_update(to, [&](T before) { return T(expression); }); \
  }
TL_CUDA_ATOMIC_16(atomic_add, before + value)
TL_CUDA_ATOMIC_16(atomic_max, before < value ? value : before)
TL_CUDA_ATOMIC_16(atomic_min, value < before ? value : before)
TL_CUDA_ATOMIC_16(atomic_and, before& value)
TL_CUDA_ATOMIC_16(atomic_or, before | value)
TL_CUDA_ATOMIC_16(atomic_xor, before ^ value)
#undef TL_CUDA_ATOMIC_16

// 32-bit and 64-bit integers. [CUDA C++ Programming Guide, "Atomic Functions: atomicMax()", "atomicAnd()"]
#define TL_CUDA_ATOMIC(name, function)                                                          \
  TL_DEVICE int name(int* to, int value) { return function(to, value); }                        \
  TL_DEVICE unsigned name(unsigned* to, unsigned value) { return function(to, value); }         \
  template <class T> TL_DEVICE cuda::If64Bit<T> name(T* to, T value) {                          \
    using Native = std::conditional_t<std::is_signed<T>::value, long long, unsigned long long>; \
    return static_cast<T>(function(reinterpret_cast<Native*>(to), static_cast<Native>(value))); \
  }
TL_CUDA_ATOMIC(atomic_max, atomicMax)
TL_CUDA_ATOMIC(atomic_min, atomicMin)
TL_CUDA_ATOMIC(atomic_and, atomicAnd)
TL_CUDA_ATOMIC(atomic_or, atomicOr)
TL_CUDA_ATOMIC(atomic_xor, atomicXor)
#undef TL_CUDA_ATOMIC

// Vector additions to consecutive elements in global memory, aligned to their total size; each element's addition is
// atomic, the vector's is not. Operands: two or four floats as bits; two 16-bit values, the first in bits 0..15.
// [PTX ISA, "Parallel Synchronization and Communication Instructions: red"]
TL_DEVICE void atomic_add_2(float* to, uint2 bits) {
  if constexpr (cuda::architecture >= 90) {
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(__uint_as_float(bits.x)), "f"(__uint_as_float(bits.y))
                 : "memory");
  } else {
    atomicAdd(to, __uint_as_float(bits.x));
    atomicAdd(to + 1, __uint_as_float(bits.y));
  }
}
TL_DEVICE void atomic_add_4(float* to, uint4 bits) {
  if constexpr (cuda::architecture >= 90) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "f"(__uint_as_float(bits.x)), "f"(__uint_as_float(bits.y)), "f"(__uint_as_float(bits.z)),
                 "f"(__uint_as_float(bits.w))
                 : "memory");
  } else {
    atomic_add_2(to, make_uint2(bits.x, bits.y));
    atomic_add_2(to + 2, make_uint2(bits.z, bits.w));
  }
}
TL_DEVICE void atomic_add_2(half* to, uint32_t pair) {
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(pair) : "memory");
}
TL_DEVICE void atomic_add_2(bfloat16* to, uint32_t pair) {
  if constexpr (cuda::architecture >= 90) {
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(pair) : "memory");
  } else {
    struct Pair {
      bfloat16 at[2];
    };
    Pair value;
    __builtin_memcpy(static_cast<void*>(&value), &pair, sizeof pair);
    atomic_update(reinterpret_cast<Pair*>(to),
                  [&](const Pair& before) { return Pair{{before.at[0] + value.at[0], before.at[1] + value.at[1]}}; });
  }
}

}  // namespace tl
