// Private arrays of a thread: native arrays. The CPU engine with checks marks their elements as unwritten, and checks
// indices.
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
  T* begin() { return elements; }
  T* end() { return elements + n; }
};
#endif

template <class T, int... extents> struct ArrayOf { using type = T; };
template <class T, int n, int... more> struct ArrayOf<T, n, more...> {
  using Element = typename ArrayOf<T, more...>::type;
#if defined(TL_ENGINE_INSTRUMENTED)
  using type = CheckedArray<Element, n>;
#else
  using type = Element[n];
#endif
};

// T array[n], or T array[n][m]. Any thread: each has its own.
template <class T, int... extents> using Array = typename ArrayOf<T, extents...>::type;

}  // namespace tl
