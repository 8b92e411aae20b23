// mbarrier objects. [PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier"]
#pragma once
#include "../memory.h"

namespace tl {

// An mbarrier in shared memory, 8-byte aligned.
using Barrier = uint64_t;

// Initialises an mbarrier whose phases expect `arrivals` arrivals. Called by: one thread; mbarrier_init_fence and a
// block barrier must follow before its use.
TL_DEVICE void mbarrier_init(Barrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}
// Makes the initialisation visible to the cluster and the async proxy. Called by: the initialising thread.
TL_DEVICE void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
// Arrives once. Called by: each thread that is counted in mbarrier_init.
TL_DEVICE void mbarrier_arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// Arrives once, and increases the phase's expected transaction count by `bytes`. Called by: the producer thread.
TL_DEVICE void mbarrier_arrive_expect(Barrier& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}
// Increases the phase's expected transaction count by `bytes`, without an arrival. Called by: one thread, before the
// phase completes.
TL_DEVICE void mbarrier_expect(Barrier& barrier, int bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}
// Triggers one arrival when all cp.async copies that this thread has issued are complete; does not wait. Called by:
// each thread that is counted in mbarrier_init. [PTX ISA, "cp.async.mbarrier.arrive", .noinc]
TL_DEVICE void cp_async_arrive(Barrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// Waits until the phase with this parity (0 for the first) has completed. Any thread.
TL_DEVICE void mbarrier_wait(Barrier& barrier, int parity) {
  uint32_t done = 0;
  while (!done) {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(shared_address(&barrier)), "r"(parity)
                 : "memory");
  }
}
// Proxy fence: orders this thread's generic-proxy accesses to shared memory before later accesses by TMA or wgmma.
// Called by: each writing thread, before the barrier that the others wait at. [PTX ISA, "fence.proxy.async"]
TL_DEVICE void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace tl
