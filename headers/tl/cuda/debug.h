// What a kernel says while it runs. Any thread.
#pragma once
#include "../standard.h"
#include "../threads.h"

namespace tl {

// Says which thread it is and ends the kernel with an error, which the next call of the CUDA runtime returns.
// [CUDA C++ Programming Guide, "Trap function", "Formatted Output"]
TL_DEVICE void assertion_failed(const char* message) {
  printf("assertion failed in block (%u, %u, %u), thread %d: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, thread(),
         message);
  __trap();
}

// As printf. Any thread.
template <class... Values> TL_DEVICE void print_text(const char* format, Values... values) {
  printf(format, values...);
}

}  // namespace tl
