// The header of every emitted kernel: the primitives of the target, and the target-independent code. docs/tl.md lists
// the names.
#pragma once
#ifndef __CUDACC_RTC__  // NVRTC compiles kernels without their launchers
#include "status.h"
#endif
#include "primitives.h"

#include "common/base.h"
#include "common/vec.h"
#include "common/math.h"
#include "common/rounding.h"
#include "common/nibbles.h"
#include "common/shape.h"
#include "common/swizzle.h"
#include "common/packet.h"
#include "common/index.h"
#include "common/shared_tile.h"
#include "common/quarters.h"
#include "common/tensor.h"
#include "common/layout.h"
#include "common/mma_accumulator.h"
#include "common/blocked.h"
#include "common/replicated.h"
#include "common/slice.h"
#include "common/fragment.h"
#include "common/array.h"
#include "common/view.h"
#include "common/parallel.h"
#include "common/chunks.h"
#include "common/copy.h"
#include "common/copy_async.h"
#include "common/gemm.h"
#include "common/gemm_fma.h"
#include "common/gemm_sparse.h"
#include "common/reduce.h"
#include "common/scan.h"
#include "common/vote.h"
#include "common/lanes.h"
#include "common/address.h"
#include "common/random.h"
#include "common/atomic.h"
#include "common/transpose.h"
#include "common/debug.h"
#include "common/rasterization.h"

#ifndef __CUDACC_RTC__
#include "common/launch.h"
#include "common/workspace.h"
#endif

// Vendor-specific parts. On the CPU engine, a warp size of 64 selects AMD's.
#if defined(__HIP__) || (defined(TL_WARP_SIZE) && TL_WARP_SIZE == 64)
#include "cdna.h"
#else
#include "sm90.h"
#endif
