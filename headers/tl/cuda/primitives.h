// All primitives for NVIDIA GPUs, with the names and signatures of headers/tl/host. Inline PTX occurs only in this
// folder.
#pragma once
#include "../threads.h"
#include "numeric.h"
#include "float8.h"
#include "memory.h"
#include "atomic.h"
#include "sync.h"
#include "warp.h"
#include "cp_async.h"
#include "mma.h"
#include "math.h"
#include "rounding.h"
#include "debug.h"
#ifndef __CUDACC_RTC__
#include "launch.h"
#endif
