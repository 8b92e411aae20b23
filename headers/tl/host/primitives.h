// All primitives of the CPU engine: the same names and signatures as headers/tl/cuda.
#pragma once
#include "kernel.h"
#include "numeric.h"
#include "float8.h"
#include "memory.h"
#include "atomic.h"
#include "sync.h"
#include "warp.h"
#include "cp_async.h"
#include "mma.h"
#include "math.h"
#include "debug.h"
#include "launch.h"
