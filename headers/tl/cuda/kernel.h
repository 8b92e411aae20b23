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

// Groups of so many threads each, one after the other; one number is the size of all. Any thread of the block.
template <int... sizes> struct Groups {
  static TL_DEVICE int group(int thread) {
    int end = 0, found = 0;
    ((end += sizes, found += thread >= end), ...);
    return found;
  }
  static TL_DEVICE int first(int thread) {
    int end = 0, found = 0;
    ((found = thread >= end ? end : found, end += sizes), ...);
    return found;
  }
  static TL_DEVICE int size(int thread) {
    int end = 0, found = 0;
    ((found = thread >= end ? sizes : found, end += sizes), ...);
    return found;
  }
};
template <int same> struct Groups<same> {
  static TL_DEVICE int group(int thread) { return thread / same; }
  static TL_DEVICE int first(int thread) { return thread - thread % same; }
  static TL_DEVICE int size(int) { return same; }
};

// Where groups of TL_GROUP threads work each by itself, tile operations see the threads of one as the whole block. It is
// one number for all groups, or one for each.
#ifdef TL_GROUP
TL_DEVICE int group() { return Groups<TL_GROUP>::group(thread_of_block()); }
TL_DEVICE int thread() { return thread_of_block() - Groups<TL_GROUP>::first(thread_of_block()); }
TL_DEVICE int group_threads() { return Groups<TL_GROUP>::size(thread_of_block()); }
#else
TL_DEVICE int thread() { return thread_of_block(); }
#endif
TL_DEVICE int lane() { return static_cast<int>(static_cast<unsigned>(thread()) % warp_size); }
TL_DEVICE int warp() { return static_cast<int>(static_cast<unsigned>(thread()) / warp_size); }

}  // namespace tl
