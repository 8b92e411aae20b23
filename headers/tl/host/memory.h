// Loads and stores of a given width, and shared memory. Plain C++ accesses need no call: kernels built with
// -fsanitize=thread report them to the engine.
#pragma once
#include <type_traits>
#include "engine.h"
#include "kernel.h"
#include "numeric.h"

namespace tl {

TL_DEVICE void* shared_memory() { return tl_engine_shared_memory(); }
TL_DEVICE uint32_t shared_address(const void* p) { return tl_engine_shared_address(p); }

namespace host {
#if defined(TL_ENGINE_INSTRUMENTED)
// Bounds check of tile indices: an out-of-bounds index may still address shared memory, of another tile.
#define TL_CHECK_INDEX(index, extent) ::tl::host::check_index(index, extent)
TL_DEVICE constexpr void check_index(int index, int extent) {
  if (__builtin_expect(unsigned(index) >= unsigned(extent), 0)) tl_engine_index_outside(index, extent);
}

template <class T>
constexpr int element_type = std::is_same<T, half>::value       ? TL_ENGINE_HALF
                             : std::is_same<T, bfloat16>::value ? TL_ENGINE_BFLOAT16
                             : std::is_same<T, float>::value    ? TL_ENGINE_FLOAT
                             : std::is_same<T, double>::value   ? TL_ENGINE_DOUBLE
                                                                : TL_ENGINE_INT8;
// Fills registers with the NaN that marks an unwritten value of their type, 32-bit integers with that of float: the
// engine reports MMAs that accumulate onto it, and stores of it to tensors.
template <class T, int n> TL_DEVICE void mark_unwritten(T (&registers)[n]) {
  constexpr uint64_t bits = sizeof(T) == 8                     ? TL_ENGINE_UNWRITTEN_DOUBLE
                            : sizeof(T) == 4                   ? TL_ENGINE_UNWRITTEN
                            : std::is_same<T, bfloat16>::value ? TL_ENGINE_UNWRITTEN_BFLOAT16
                                                               : TL_ENGINE_UNWRITTEN_HALF;
  if constexpr (sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8) {
    for (T& element : registers) std::memcpy(&element, &bits, sizeof(T));
  }
}
#define TL_CHECK_ACCUMULATOR(sum) \
  tl_engine_check_accumulators(&(sum), 1, ::tl::host::element_type<std::decay_t<decltype(sum)>>)
#define TL_MARK_COMPUTED(sum) tl_engine_mark_computed(&(sum), 1, ::tl::host::element_type<std::decay_t<decltype(sum)>>)

// While it lives, the thread reads shared memory for the operands of an MMA of T only.
template <class T> struct OperandReads {
  static constexpr int type = element_type<T>;
  static constexpr bool marks = type == TL_ENGINE_HALF || type == TL_ENGINE_BFLOAT16 || type == TL_ENGINE_FLOAT;
  TL_DEVICE OperandReads() {
    if constexpr (marks) tl_engine_operand_reads(1);
  }
  TL_DEVICE ~OperandReads() {
    if constexpr (marks) tl_engine_operand_reads(0);
  }
};
#define TL_OPERAND_READS(T) const ::tl::host::OperandReads<T> operand_reads
#endif

// Without checks a plain copy: it is cheaper than the call.
template <class Bits> TL_DEVICE Bits load(const void* from) {
  Bits bits;
#if defined(TL_ENGINE_INSTRUMENTED)
  tl_engine_load(&bits, from, sizeof bits);
#else
  std::memcpy(&bits, __builtin_assume_aligned(from, sizeof bits), sizeof bits);
#endif
  return bits;
}
template <class Bits> TL_DEVICE void store(void* to, Bits bits) {
#if defined(TL_ENGINE_INSTRUMENTED)
  tl_engine_store(to, &bits, sizeof bits);
#else
  std::memcpy(__builtin_assume_aligned(to, sizeof bits), &bits, sizeof bits);
#endif
}
}  // namespace host

TL_DEVICE uint4 load16(const void* from) { return host::load<uint4>(from); }
TL_DEVICE uint2 load8(const void* from) { return host::load<uint2>(from); }
TL_DEVICE uint32_t load4(const void* from) { return host::load<uint32_t>(from); }
TL_DEVICE uint16_t load2(const void* from) { return host::load<uint16_t>(from); }
TL_DEVICE void store16(void* to, uint4 bits) { host::store(to, bits); }
TL_DEVICE void store8(void* to, uint2 bits) { host::store(to, bits); }
TL_DEVICE void store4(void* to, uint32_t bits) { host::store(to, bits); }
TL_DEVICE void store2(void* to, uint16_t bits) { host::store(to, bits); }

// Caches are not simulated.
TL_DEVICE uint4 load16_evict_first(const void* from, bool wanted) { return wanted ? load16(from) : uint4{}; }
TL_DEVICE uint4 load16_evict_last(const void* from, bool wanted) { return load16_evict_first(from, wanted); }

}  // namespace tl
