// The functions that the compiler calls at each plain load and store with -fsanitize=thread. Kernels are compiled with
// that option and linked without it: these definitions replace libtsan, and do not affect other libraries.
#include "worker.h"

using namespace tile2cu::engine;

namespace {

// Only shared memory and the device heap are tracked: stacks and host memory are private to a thread.
inline void on_plain_access(const void* address, std::size_t bytes, bool is_write, Site site) {
  Worker* worker = active_worker;
  if (!worker || !worker->running) return;
  if (!worker->is_shared(address) && !GlobalMemory::instance().contains(address)) return;
  if (worker->options.preempt > 0 && worker->random.happens(worker->options.preempt)) worker->yield_current();
  if (worker->observes()) worker->access(address, std::uint32_t(bytes), is_write, site);
}

}  // namespace

#define TILE2CU_HOOK(name, bytes, is_write) \
  void name(void* address) { on_plain_access(address, bytes, is_write, TILE2CU_CALL_SITE); }
#define TILE2CU_HOOKS(bytes)                                        \
  TILE2CU_HOOK(__tsan_read##bytes, bytes, false)                    \
  TILE2CU_HOOK(__tsan_write##bytes, bytes, true)                    \
  TILE2CU_HOOK(__tsan_unaligned_read##bytes, bytes, false)          \
  TILE2CU_HOOK(__tsan_unaligned_write##bytes, bytes, true)          \
  TILE2CU_HOOK(__tsan_volatile_read##bytes, bytes, false)           \
  TILE2CU_HOOK(__tsan_volatile_write##bytes, bytes, true)           \
  TILE2CU_HOOK(__tsan_unaligned_volatile_read##bytes, bytes, false) \
  TILE2CU_HOOK(__tsan_unaligned_volatile_write##bytes, bytes, true)

extern "C" {

TILE2CU_HOOKS(1)
TILE2CU_HOOKS(2)
TILE2CU_HOOKS(4)
TILE2CU_HOOKS(8)
TILE2CU_HOOKS(16)

void __tsan_read_range(void* address, std::size_t bytes) { on_plain_access(address, bytes, false, TILE2CU_CALL_SITE); }
void __tsan_write_range(void* address, std::size_t bytes) { on_plain_access(address, bytes, true, TILE2CU_CALL_SITE); }

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

}  // extern "C"
