// All primitives for AMD GPUs: the same names and signatures as headers/tl/cuda and headers/tl/host. What the hardware
// has no counterpart for is declared, so that templates parse, and says so in a static_assert when it is used.
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
