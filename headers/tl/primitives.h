// The primitives of the compilation target: an NVIDIA GPU, an AMD GPU, or the CPU engine. They have the same names and
// signatures for each target; common/ contains the target-independent code.
#pragma once

#if defined(__CUDACC__)
#include "cuda/primitives.h"
#elif defined(__HIP__)
#include "hip/primitives.h"
#else
#include "host/primitives.h"
#endif
