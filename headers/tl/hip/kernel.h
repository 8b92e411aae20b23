// Function qualifiers, and the thread index.
#pragma once
#if !defined(TL_HIP_STANDALONE) && __has_include(<hip/hip_runtime.h>)
#include <hip/hip_runtime.h>
#include "device.h"
#else
#include "standalone.h"
#endif

#define TL_DEVICE __device__ inline __attribute__((always_inline))
#define TL_BOTH __host__ __device__ inline __attribute__((always_inline))
#define TL_UNROLL _Pragma("unroll")
#define TL_UNROLL_LITTLE _Pragma("unroll 4")
#define TL_NO_UNROLL _Pragma("unroll 1")
// Inlines all calls of a lambda: a real call would pass its captures through memory.
#define TL_INLINED_LAMBDA __attribute__((always_inline))

namespace tl {

// CDNA executes wavefronts of 64 lanes. [AMD Instinct MI300 ISA, "Program Organization"]
constexpr int warp_size = 64;

// The linear thread index: emitted blocks are one-dimensional.
TL_DEVICE int thread_of_block() { return static_cast<int>(threadIdx.x); }
// On a GPU nobody asks which tile a block computes.
TL_DEVICE void note_tile(int, int, int) {}

namespace hip {
// A dependent false, for a static_assert in functions that this target lacks.
template <class...> constexpr bool lacks = false;
}  // namespace hip

}  // namespace tl
