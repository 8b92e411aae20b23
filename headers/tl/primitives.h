// The primitives of the machine that this compiler makes code for: an NVIDIA GPU, an AMD GPU, or the CPU engine. They
// have the same names and signatures on each side; everything in common/ is written once on top of them.
#pragma once

#if defined(__CUDACC__)
#include "cuda/primitives.h"
#elif defined(__HIP__)
#include "hip/primitives.h"
#else
#include "host/primitives.h"
#endif
