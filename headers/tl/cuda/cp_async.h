// cp.async: asynchronous copies from global to shared memory.
#pragma once
#include "memory.h"

namespace tl {

// Issues a copy of source_bytes (0..bytes) and fills the rest of `bytes` with zeros; with 0 nothing is read. Both
// addresses are aligned to `bytes`. Any thread. The bytes are visible to this thread after cp_async_wait, and to other
// threads after a barrier that follows it. 16-byte copies bypass L1 (.cg); all prefetch the 128-byte line into L2.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async"]
template <int bytes> TL_DEVICE void cp_async(void* to, const void* from, int source_bytes) {
  static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(source_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from),
                 "n"(bytes), "r"(source_bytes)
                 : "memory");
}

// Whether streaming accesses to a tensor of this size use evict_first. GEMV of 2-bit weights on an H200: 1.03 to 1.15
// times as fast with 40 to 210 MB, 0.95 to 1.0 from 300 MB on (benchmarks/RESULTS.md, "What the L2 holds").
TL_DEVICE bool spares_l2(int64_t bytes) { return bytes <= int64_t(256) << 20; }

// As cp_async, for data that is read once: L2 evicts the lines first (createpolicy evict_first).
// ptxas of CUDA 13.0 and 13.5 encodes a cp.async that has a cache policy and an address in a uniform register as an
// illegal instruction (tests/compile/test_addresses.py). Adding threadIdx.y, which is 0 in one-dimensional blocks,
// keeps the address in a per-thread register.
// [PTX ISA, "Data Movement and Conversion Instructions: createpolicy, cp.async"]
template <int bytes> TL_DEVICE void cp_async_once(void* to, const void* from, int source_bytes) {
  uint64_t policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  const uint32_t address = shared_address(to) + threadIdx.y;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(address), "l"(from),
                 "r"(source_bytes), "l"(policy)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global.L2::cache_hint.L2::128B [%0], [%1], %2, %3, %4;" ::"r"(address), "l"(from),
                 "n"(bytes), "r"(source_bytes), "l"(policy)
                 : "memory");
}

// Commits this thread's outstanding copies as a group, which may be empty. Any thread.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.commit_group"]
TL_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most the n most recent groups of this thread are pending. Any thread; a barrier after it makes the
// bytes visible to other threads.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.wait_group"]
template <int n> TL_DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }

}  // namespace tl
