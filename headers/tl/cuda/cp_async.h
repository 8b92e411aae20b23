// cp.async: copies from global to shared memory that run while the thread goes on.
#pragma once
#include "memory.h"

namespace tl {

// Starts to copy source_bytes (0..bytes) and to fill the rest of `bytes` with zeros; with 0 nothing is read. Both
// addresses are multiples of `bytes`. Any thread. The bytes are there for this thread after cp_async_wait, and for
// others after a barrier that follows it. 16 bytes bypass L1 and ask L2 for the whole 128-byte line.
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

// Whether it pays to give up first what is read once of a tensor of so many bytes: of one much larger than L2 the rest
// of L2 is lost either way. [measured on an H200: benchmarks/RESULTS.md, "What the L2 holds"]
TL_DEVICE bool spares_l2(int64_t bytes) { return bytes <= int64_t(256) << 20; }

// The same of what is read once: L2 gives it up before anything else that it holds.
// ptxas of CUDA 13.0 and 13.5 gives a cp.async that has a policy and an address in a uniform register a code that the
// chip refuses. `threadIdx.y`, which is 0 in blocks of one dimension, leaves the address in a register of the thread.
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

// Closes this thread's group of copies; a group may be empty. Any thread.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.commit_group"]
TL_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most n of this thread's latest groups are in flight. Any thread; others need a barrier after it.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.wait_group"]
template <int n> TL_DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }

}  // namespace tl
