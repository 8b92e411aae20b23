// The additional primitives of sm_90a: mbarriers, TMA, wgmma, stmatrix, clusters.
#pragma once
#include "primitives.h"

#if defined(__CUDACC__)
#include "cuda/sm90/primitives.h"
#else
#include "host/sm90/primitives.h"
#endif
