// Thread block clusters and distributed shared memory.
// [CUDA C++ Programming Guide, "Thread Block Clusters", "Distributed Shared Memory"]
#pragma once
#include "../sync.h"
#include "mbarrier.h"
#include "tma.h"

namespace tl {

// The rank of this block in its cluster, x fastest. Any thread.
// [PTX ISA, "Special Registers: %cluster_ctarank"]
TL_DEVICE int block_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

// The cluster barrier, split: cluster_arrive does not wait; cluster_wait waits until all non-exited threads of the
// cluster have arrived. Writes before cluster_arrive are visible after the wait, writes before a relaxed arrival are
// not. Called by: whole warps; every thread of the cluster alternates arrive and wait.
// [PTX ISA, "Parallel Synchronization and Communication Instructions: barrier.cluster"]
TL_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
TL_DEVICE void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
TL_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
// Arrive and wait. Called by: every thread of the cluster.
TL_DEVICE void sync_cluster() {
  cluster_arrive();
  cluster_wait();
}
// Makes mbarriers visible to all threads of the cluster, after one thread of each block has initialised them and
// executed mbarrier_init_fence; no other writes of other blocks become visible. A releasing arrival would wait until
// all earlier writes are visible to the GPU. Called by: every thread of the cluster.
// [PTX ISA, "Parallel Synchronization and Communication Instructions: membar, fence", fence.mbarrier_init]
TL_DEVICE void cluster_sync_relaxed() {
  sync_threads();
  cluster_arrive_relaxed();
  cluster_wait();
}

// The object at the address of `own` in the shared memory of the block with this rank. That block must not exit before
// the last access. Any thread. [PTX ISA, "Data Movement and Conversion Instructions: mapa"]
template <class T> TL_DEVICE T& in_block(T& own, int rank) {
  uint64_t address;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(&own), "r"(rank));
  return *reinterpret_cast<T*>(address);
}
// Its 32-bit address for instructions with .shared::cluster.
TL_DEVICE uint32_t shared_address_in_block(const void* own, int rank) {
  uint32_t address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(own)), "r"(rank));
  return address;
}

// Arrives at the mbarrier at the address of `own` in the block with this rank, and with `bytes` also increases the
// phase's expected transaction count. Called by: each thread that is counted in its mbarrier_init.
TL_DEVICE void mbarrier_arrive(Barrier& own, int rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(shared_address_in_block(&own, rank))
               : "memory");
}
// The same with release at block scope, for threads that have only read. The cluster-scope release above waits until
// all blocks of the cluster see this thread's writes, about 1000 cycles (MEMBAR.ALL.GPU in the SASS).
TL_DEVICE void mbarrier_arrive_as_reader(Barrier& own, int rank) {
  asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(shared_address_in_block(&own, rank))
               : "memory");
}
TL_DEVICE void mbarrier_arrive_expect(Barrier& own, int bytes, int rank) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                   shared_address_in_block(&own, rank)),
               "r"(bytes)
               : "memory");
}
// As mbarrier_wait, with acquire at cluster scope: writes of other blocks' threads before their arrival are visible.
// Any thread.
TL_DEVICE void mbarrier_wait_cluster(Barrier& barrier, int parity) {
  uint32_t done = 0;
  while (!done) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(&barrier)), "r"(parity)
        : "memory");
  }
}
// Arrives, and waits until the current phase completes. Called by: each thread that is counted in mbarrier_init.
TL_DEVICE void mbarrier_arrive_and_wait(Barrier& barrier) {
  uint64_t phase;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(phase) : "r"(shared_address(&barrier)) : "memory");
  uint32_t done = 0;
  while (!done) {
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(shared_address(&barrier)), "l"(phase)
                 : "memory");
  }
}

// As tma_load_box, multicast to the blocks whose rank's bit is set in `mask`: to the address of `to` in each of them;
// the bytes complete on the mbarrier at the address of `barrier` there. Called by: one thread of the cluster.
// [PTX ISA, "cp.async.bulk.tensor", .multicast::cluster]
#define TL_TMA_LOAD(dims, coordinates, ...)                                                                       \
  asm volatile("cp.async.bulk.tensor." dims                                                                       \
               ".shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {" coordinates \
               "}], [%2], %3;" ::"r"(shared_address(to)),                                                         \
               "l"(&map), "r"(shared_address(&barrier)), "h"(mask), __VA_ARGS__                                   \
               : "memory")
template <int rank>
TL_DEVICE void tma_load_box_to(uint16_t mask, void* to, const TensorMap& map, const int (&at)[rank], Barrier& barrier) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  if constexpr (rank == 2) TL_TMA_LOAD("2d", "%4, %5", "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 3) TL_TMA_LOAD("3d", "%4, %5, %6", "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 4) TL_TMA_LOAD("4d", "%4, %5, %6, %7", "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 5)
    TL_TMA_LOAD("5d", "%4, %5, %6, %7, %8", "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
}
#undef TL_TMA_LOAD

// Issues a copy from this block's shared memory to the address of `to` in the block with this rank; the bytes complete
// on the mbarrier at the address of `barrier` there. Addresses and `bytes` are multiples of 16. A fence_async_proxy
// must precede it if threads wrote `from`. Called by: one thread.
// [PTX ISA, "cp.async.bulk", .shared::cluster.shared::cta]
TL_DEVICE void bulk_copy_to(int rank, void* to, const void* from, int bytes, Barrier& barrier) {
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address_in_block(to, rank)),
               "r"(shared_address(from)), "r"(bytes), "r"(shared_address_in_block(&barrier, rank))
               : "memory");
}

}  // namespace tl
