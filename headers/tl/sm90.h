// What sm_90a adds to the primitives: memory barriers, TMA, wgmma. Kernels for that machine include it after tl.h.
#pragma once
#include "tl.h"

#if defined(__CUDACC__)
#include "cuda/sm90/primitives.h"
#else
#include "host/sm90/primitives.h"
#endif
