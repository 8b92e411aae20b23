// Includes for kernels in CuTe's style that copy tiles to shared memory and have no MMAs: its base stays in a register,
// where compilers else read it from a special register for each copy. Kernels with MMAs are slower so
// (docs/lab/cute.md).
#pragma once
#define TL_SHARED_MEMORY_IN_REGISTER
#include "cute.h"
