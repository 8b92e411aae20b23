// The primitives that sm_90a adds to those of primitives.h: memory barriers, TMA, wgmma, stmatrix.
#pragma once
#include "primitives.h"

#if defined(__CUDACC__)
#include "cuda/sm90/primitives.h"
#else
#include "host/sm90/primitives.h"
#endif
