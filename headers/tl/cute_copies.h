// Includes for kernels in CuTe's style that copy tiles to shared memory and have no MMAs. Few of their addresses are in
// shared memory: compilers keep its base in a register. With MMAs, whose operands have many, they fold constants into
// the base, and it is better read from the special register (docs/lab/cute.md).
#pragma once
#define TL_SHARED_MEMORY_IN_REGISTER
#include "cute.h"
