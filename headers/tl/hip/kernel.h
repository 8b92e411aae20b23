// How functions are declared, and which thread this is.
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
// Before a call of a kernel's own lambda: a real call would cost its captures a way through memory.
#define TL_INLINED [[clang::always_inline]]

namespace tl {

// CDNA runs waves of 64 lanes. [AMD Instinct MI300 ISA, "Program Organization"]
constexpr int warp_size = 64;

// Emitted blocks are one-dimensional, so threadIdx.x is the thread's number in the block.
TL_DEVICE int thread_of_block() { return static_cast<int>(threadIdx.x); }

namespace hip {
// False, but only known once a template is instantiated: for a static_assert in what this target lacks.
template <class...> constexpr bool lacks = false;
}  // namespace hip

}  // namespace tl
