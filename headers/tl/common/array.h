// Native arrays: private ones of a thread, and stages or planes of tiles in shared memory. The CPU engine with checks
// checks their indices, and marks the elements of private ones as unwritten.
#pragma once
#include "base.h"

namespace tl {

#if defined(TL_ENGINE_INSTRUMENTED)
template <class T, int n> struct CheckedArray {
  T elements[n];

  CheckedArray() {
    if constexpr (std::is_arithmetic<T>::value || is_widened<T>) host::mark_unwritten(elements);
  }
  T& operator[](int i) {
    TL_CHECK_INDEX(i, n);
    return elements[i];
  }
  const T& operator[](int i) const {
    TL_CHECK_INDEX(i, n);
    return elements[i];
  }
  operator T*() { return elements; }
  T* begin() { return elements; }
  T* end() { return elements + n; }
};
#endif

template <class T, int... extents> struct ArrayOf {
  using type = T;
};
template <class T, int n, int... more> struct ArrayOf<T, n, more...> {
  using Element = typename ArrayOf<T, more...>::type;
#if defined(TL_ENGINE_INSTRUMENTED)
  using type = CheckedArray<Element, n>;
#else
  using type = Element[n];
#endif
};

// T array[n], or T array[n][m]. Any thread.
template <class T, int... extents> using Array = typename ArrayOf<T, extents...>::type;

}  // namespace tl
