// How functions are declared, and which thread this is.
#pragma once
#include "../standard.h"

// Everything in headers/tl is inlined whole: a call would spill the accumulators.
#define TL_DEVICE __device__ __forceinline__
// For the few functions that launchers call as well.
#define TL_BOTH __host__ __device__ __forceinline__
// Before a loop whose index must be a constant for the compiler, so that arrays stay in registers.
#define TL_UNROLL _Pragma("unroll")
// Before a loop over a rarely taken path.
#define TL_UNROLL_LITTLE _Pragma("unroll 4")
#define TL_NO_UNROLL _Pragma("unroll 1")

namespace tl {

constexpr int warp_size = 32;

// Emitted blocks are one-dimensional, so threadIdx.x is the thread's number in the block.
TL_DEVICE int thread_of_block() { return static_cast<int>(threadIdx.x); }

}  // namespace tl
