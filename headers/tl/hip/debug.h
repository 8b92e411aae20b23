// Assertions and printing in kernels. Any thread.
#pragma once
#include "kernel.h"

namespace tl {

#ifdef HIP_VERSION  // with HIP's headers: printf writes to the host's output. [HIP programming manual, "printf"]
template <class... Values> TL_DEVICE void print_text(const char* format, Values... values) {
  printf(format, values...);
}
#else  // without a device library printing is a no-op
template <class... Values> TL_DEVICE void print_text(const char*, Values...) {}
#endif

// Prints the block, the thread and the message, and ends the kernel with an error.
TL_DEVICE void assertion_failed(const char* message) {
  print_text("assertion failed in block (%u, %u, %u), thread %d: %s\n", unsigned(blockIdx.x), unsigned(blockIdx.y),
             unsigned(blockIdx.z), thread_of_block(), message);
  __builtin_trap();
}

}  // namespace tl
