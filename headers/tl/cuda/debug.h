// What a kernel says while it runs. Any thread.
#pragma once
#include <cstdio>
#include "kernel.h"

namespace tl {

// Says which thread it is and ends the kernel with an error, which the next call of the CUDA runtime returns.
// [CUDA C++ Programming Guide, "Trap function", "Formatted Output"]
TL_DEVICE void assertion_failed(const char* message) {
  printf("assertion failed in block (%u, %u, %u), thread %d: %s\n", blockIdx.x, blockIdx.y, blockIdx.z, thread(),
         message);
  __trap();
}

// A line with a name, the place of an element (the first `rank` of i, j, k), its value, and who holds it.
TL_DEVICE void print_line(const char* name, int rank, int i, int j, int k, double value) {
  const unsigned x = blockIdx.x, y = blockIdx.y, z = blockIdx.z;
  const int t = thread();
  if (rank == 0) printf("%s = %g in block (%u, %u, %u), thread %d\n", name, value, x, y, z, t);
  if (rank == 1) printf("%s(%d) = %g in block (%u, %u, %u), thread %d\n", name, i, value, x, y, z, t);
  if (rank == 2) printf("%s(%d, %d) = %g in block (%u, %u, %u), thread %d\n", name, i, j, value, x, y, z, t);
  if (rank == 3) printf("%s(%d, %d, %d) = %g in block (%u, %u, %u), thread %d\n", name, i, j, k, value, x, y, z, t);
}
TL_DEVICE void print_line(const char* name, int rank, int i, int j, int k, long long value) {
  const unsigned x = blockIdx.x, y = blockIdx.y, z = blockIdx.z;
  const int t = thread();
  if (rank == 0) printf("%s = %lld in block (%u, %u, %u), thread %d\n", name, value, x, y, z, t);
  if (rank == 1) printf("%s(%d) = %lld in block (%u, %u, %u), thread %d\n", name, i, value, x, y, z, t);
  if (rank == 2) printf("%s(%d, %d) = %lld in block (%u, %u, %u), thread %d\n", name, i, j, value, x, y, z, t);
  if (rank == 3) printf("%s(%d, %d, %d) = %lld in block (%u, %u, %u), thread %d\n", name, i, j, k, value, x, y, z, t);
}

}  // namespace tl
