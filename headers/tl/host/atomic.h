// Atomic operations on global or shared memory, relaxed. Any thread. Each returns the previous value.
#pragma once
#include <type_traits>
#include "../common/bits_of.h"
#include "engine.h"
#include "kernel.h"
#include "numeric.h"

namespace tl {

// *to = update(*to), by a compare-and-swap loop: blocks may run on several OS threads. Kernels built with
// -fsanitize=thread report the exchanges to the engine. The first exchange only reads; a plain load would be a race.
template <class T, class Update> TL_DEVICE T atomic_update(T* to, const Update& update) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  Bits* const word = reinterpret_cast<Bits*>(to);
  Bits seen = 0, wanted = 0;
  __atomic_compare_exchange_n(word, &seen, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  do {
    wanted = host::bit_cast<Bits>(update(host::bit_cast<T>(seen)));
  } while (!__atomic_compare_exchange_n(word, &seen, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  return host::bit_cast<T>(seen);
}

// Replaces the bits of a byte that `mask` selects by those of `bits`; other threads may write the other bits
// concurrently.
TL_DEVICE void replace_bits(uint8_t* byte, uint8_t mask, uint8_t bits) { tl_engine_replace_bits(byte, mask, bits); }

// Atomic load and store of one element. The load yields, so that a thread that spins on another's store lets it run.
template <class T> TL_DEVICE T load_atomically(const T* from) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  const Bits bits = __atomic_load_n(reinterpret_cast<const Bits*>(from), __ATOMIC_SEQ_CST);
  tl_engine_yield();
  return host::bit_cast<T>(bits);
}
template <class T> TL_DEVICE void store_atomically(T* to, T value) {
  using Bits = typename BitsOf<sizeof(T)>::type;
  __atomic_store_n(reinterpret_cast<Bits*>(to), host::bit_cast<Bits>(value), __ATOMIC_SEQ_CST);
}
TL_DEVICE void memory_fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

TL_DEVICE float atomic_add(float* to, float value) { return tl_engine_atomic_add_float(to, value); }
TL_DEVICE int atomic_add(int* to, int value) { return tl_engine_atomic_add_int(to, value); }
TL_DEVICE half atomic_add(half* to, half value) {
  return half::from_bits(tl_engine_atomic_add_16bit(to, value.bits, TL_ENGINE_HALF));
}
TL_DEVICE bfloat16 atomic_add(bfloat16* to, bfloat16 value) {
  return bfloat16::from_bits(tl_engine_atomic_add_16bit(to, value.bits, TL_ENGINE_BFLOAT16));
}
TL_DEVICE unsigned atomic_add(unsigned* to, unsigned value) {
  return unsigned(tl_engine_atomic_add_int(reinterpret_cast<int*>(to), int(value)));
}
template <class T>
TL_DEVICE std::enable_if_t<std::is_arithmetic<T>::value && (sizeof(T) == 8 || sizeof(T) == 2), T> atomic_add(T* to,
                                                                                                             T value) {
  return atomic_update(to, [&](T before) { return T(before + value); });
}

#define TL_HOST_ATOMIC(name, expression)                                                               \
  template <class T> TL_DEVICE T name(T* to, T value) {                                                \
    static_assert(std::is_integral<T>::value && sizeof(T) >= 2, "a 16-bit, 32-bit or 64-bit integer"); \
    return atomic_update(to, [&](T before) { return T(expression); });                                 \
  }
TL_HOST_ATOMIC(atomic_max, before < value ? value : before)
TL_HOST_ATOMIC(atomic_min, value < before ? value : before)
TL_HOST_ATOMIC(atomic_and, before& value)
TL_HOST_ATOMIC(atomic_or, before | value)
TL_HOST_ATOMIC(atomic_xor, before ^ value)
#undef TL_HOST_ATOMIC

// Additions to consecutive elements in global memory, aligned to their total size; each element's addition is atomic,
// the vector's is not.
TL_DEVICE void atomic_add_2(float* to, uint2 bits) {
  atomic_add(to, host::bit_cast<float>(bits.x));
  atomic_add(to + 1, host::bit_cast<float>(bits.y));
}
TL_DEVICE void atomic_add_4(float* to, uint4 bits) {
  atomic_add_2(to, uint2{bits.x, bits.y});
  atomic_add_2(to + 2, uint2{bits.z, bits.w});
}
template <class T> TL_DEVICE void atomic_add_2(T* to, uint32_t pair) {
  atomic_add(to, T::from_bits(uint16_t(pair)));
  atomic_add(to + 1, T::from_bits(uint16_t(pair >> 16)));
}

}  // namespace tl
