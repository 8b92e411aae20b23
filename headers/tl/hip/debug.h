// What a kernel says while it runs. Any thread.
#pragma once
#include "kernel.h"

namespace tl {

#ifdef HIP_VERSION  // HIP's own headers are there: printf goes to the host. [HIP programming manual, "printf"]
template <class... Values> TL_DEVICE void print_text(const char* format, Values... values) {
  printf(format, values...);
}
#else  // without a device library there is no text
template <class... Values> TL_DEVICE void print_text(const char*, Values...) {}
#endif

// Says which thread it is, where there is text, and ends the kernel with an error.
TL_DEVICE void assertion_failed(const char* message) {
  print_text("assertion failed in block (%u, %u, %u), thread %d: %s\n", unsigned(blockIdx.x), unsigned(blockIdx.y),
             unsigned(blockIdx.z), thread_of_block(), message);
  __builtin_trap();
}

}  // namespace tl
