// Memory barriers.  [PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"]
#pragma once
#include "../memory.h"

namespace tl {

// Eight bytes of shared memory, a multiple of 8.
using Barrier = uint64_t;

// Called by: one thread, before anyone uses the barrier; then mbarrier_init_fence and a block barrier.
TL_DEVICE void mbarrier_init(Barrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}
// Makes initialised barriers visible to the copy engine. Called by: the thread that initialised them.
TL_DEVICE void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// One arrival. Called by: each thread that was counted in mbarrier_init.
TL_DEVICE void mbarrier_arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// One arrival, and the phase also waits for `bytes` bytes of TMA. Called by: the producer thread.
TL_DEVICE void mbarrier_arrive_expect(Barrier& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}
// The phase also waits for `bytes` bytes of TMA; no arrival. Called by: one thread, before its phase is over.
TL_DEVICE void mbarrier_expect(Barrier& barrier, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}
// One arrival when all that this thread has begun to copy by cp_async is there; it does not wait. Called by: each
// thread that was counted in mbarrier_init.  [PTX ISA, "cp.async.mbarrier.arrive", .noinc]
TL_DEVICE void cp_async_arrive(Barrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// Waits until the phase of this parity (0 for the first) has completed. Called by: anyone.
TL_DEVICE void mbarrier_wait(Barrier& barrier, int parity) {
  uint32_t done = 0;
  while (!done) {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(shared_address(&barrier)), "r"(parity)
                 : "memory");
  }
}
// Orders this thread's ordinary shared-memory stores before later reads by TMA or wgmma. Called by: each storing
// thread, before the barrier that others wait at.  [fence.proxy]
TL_DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace tl
