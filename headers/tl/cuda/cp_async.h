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

// Closes this thread's group of copies; a group may be empty. Any thread.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.commit_group"]
TL_DEVICE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most n of this thread's latest groups are in flight. Any thread; others need a barrier after it.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.wait_group"]
template <int n> TL_DEVICE void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }

}  // namespace tl
