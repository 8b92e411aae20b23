// All primitives for AMD GPUs, with the names and signatures of headers/tl/cuda and headers/tl/host. Primitives that
// the hardware lacks are declared, so that templates parse, and fail with a static_assert if instantiated.
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
#include "launch.h"
