// Groups of threads that work each by itself.
#pragma once
#ifndef TL_DEVICE  // kernel.h includes this file where it has defined that, before all else
#include "../primitives.h"
#endif

namespace tl {

// So many threads each, one group after the other. Any thread of the block, which is the `thread`-th.
template <int... sizes> struct Groups {
  static TL_DEVICE int group(int thread) {
    int end = 0, found = 0;
    ((end += sizes, found += thread >= end), ...);
    return found;
  }
  static TL_DEVICE int first(int thread) {
    int end = 0, found = 0;
    ((end += sizes, found = thread >= end ? end : found), ...);
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

}  // namespace tl
