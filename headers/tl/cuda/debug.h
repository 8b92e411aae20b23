// Assertions and printing in kernels. Any thread.
#pragma once
#include "../standard.h"
#include "../threads.h"

namespace tl {

// Prints the block, the thread and the message, and ends the kernel with an error, which the next CUDA runtime call
// returns.
// [CUDA C++ Programming Guide, "Trap function", "Formatted Output"]
TL_DEVICE void assertion_failed(const char* message) {
  printf("assertion failed in block (%u, %u, %u), thread %d: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, thread(),
         message);
  __trap();
}

// As printf.
template <class... Values> TL_DEVICE void print_text(const char* format, Values... values) {
  printf(format, values...);
}

}  // namespace tl
