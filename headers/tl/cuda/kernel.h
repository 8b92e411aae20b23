// Function qualifiers, and the thread index.
#pragma once
#include "../standard.h"

// All device functions are inlined: a call would spill the accumulators.
#define TL_DEVICE __device__ __forceinline__
// For functions that launchers call, too.
#define TL_BOTH __host__ __device__ __forceinline__
// Full unrolling: register arrays need compile-time indices.
#define TL_UNROLL _Pragma("unroll")
// Partial unrolling, for paths that are executed rarely.
#define TL_UNROLL_LITTLE _Pragma("unroll 4")
#define TL_NO_UNROLL _Pragma("unroll 1")

namespace tl {

constexpr int warp_size = 32;

// The linear thread index: emitted blocks are one-dimensional.
TL_DEVICE int thread_of_block() { return static_cast<int>(threadIdx.x); }
// On a GPU nobody asks which tile a block computes.
TL_DEVICE void note_tile(int, int, int) {}

}  // namespace tl
