// Thread indices: in the block, in a group of its threads, in a warp.
#pragma once

#if defined(__CUDACC__)
#include "cuda/kernel.h"
#elif defined(__HIP__)
#include "hip/kernel.h"
#else
#include "host/kernel.h"
#endif

namespace tl {

// Consecutive groups of threads with these sizes; a single number is the size of every group. Any thread.
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

// With TL_GROUP, groups of threads execute tile operations independently: thread() is the index in the group. TL_GROUP
// is one size for all groups, or a list of sizes.
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
