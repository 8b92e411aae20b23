// The functions to which -fsanitize=thread lowers the compiler's atomics. Kernels use the atomics of headers/tl; these
// serve other code in the same file, such as the guard of a local static variable. All are sequentially consistent,
// whatever memory order is passed. A fence is a tl::memory_fence.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "worker.h"

using namespace tile2cu::engine;

namespace {

template <class Bits> Bits* observed(volatile void* address, bool is_write, Site site) {
  void* plain = const_cast<void*>(address);
  Worker* worker = active_worker;
  if (worker && worker->running && worker->observes()) worker->access(plain, sizeof(Bits), is_write, site, true);
  return static_cast<Bits*>(plain);
}

}  // namespace

#define TILE2CU_FETCH(bits, operation)                                                                           \
  std::uint##bits##_t __tsan_atomic##bits##_fetch_##operation(volatile void* address, std::uint##bits##_t value, \
                                                              int) {                                             \
    return __atomic_fetch_##operation(observed<std::uint##bits##_t>(address, true, TILE2CU_CALL_SITE), value,    \
                                      __ATOMIC_SEQ_CST);                                                         \
  }
#define TILE2CU_COMPARE(bits, strength, is_weak)                                                                      \
  int __tsan_atomic##bits##_compare_exchange_##strength(volatile void* address, void* expected,                       \
                                                        std::uint##bits##_t value, int, int) {                        \
    return __atomic_compare_exchange_n(observed<std::uint##bits##_t>(address, true, TILE2CU_CALL_SITE),               \
                                       static_cast<std::uint##bits##_t*>(expected), value, is_weak, __ATOMIC_SEQ_CST, \
                                       __ATOMIC_SEQ_CST);                                                             \
  }
#define TILE2CU_ATOMICS(bits)                                                                                   \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile void* address, int) {                           \
    return __atomic_load_n(observed<std::uint##bits##_t>(const_cast<void*>(address), false, TILE2CU_CALL_SITE), \
                           __ATOMIC_SEQ_CST);                                                                   \
  }                                                                                                             \
  void __tsan_atomic##bits##_store(volatile void* address, std::uint##bits##_t value, int) {                    \
    __atomic_store_n(observed<std::uint##bits##_t>(address, true, TILE2CU_CALL_SITE), value, __ATOMIC_SEQ_CST); \
  }                                                                                                             \
  std::uint##bits##_t __tsan_atomic##bits##_exchange(volatile void* address, std::uint##bits##_t value, int) {  \
    return __atomic_exchange_n(observed<std::uint##bits##_t>(address, true, TILE2CU_CALL_SITE), value,          \
                               __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                             \
  TILE2CU_FETCH(bits, add)                                                                                      \
  TILE2CU_FETCH(bits, sub)                                                                                      \
  TILE2CU_FETCH(bits, and)                                                                                      \
  TILE2CU_FETCH(bits, or)                                                                                       \
  TILE2CU_FETCH(bits, xor)                                                                                      \
  TILE2CU_COMPARE(bits, strong, false)                                                                          \
  TILE2CU_COMPARE(bits, weak, true)

extern "C" {

TILE2CU_ATOMICS(8)
TILE2CU_ATOMICS(16)
TILE2CU_ATOMICS(32)
TILE2CU_ATOMICS(64)

void __tsan_atomic_thread_fence(int) {
  Worker* worker = active_worker;
  if (worker && worker->running && worker->options.check) worker->fence_memory();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"
