// Where elements lie, for functions of the user's own. Any thread.
#pragma once
#include "packet.h"

namespace tl {

// The address of an element of a tensor, which must lie inside it, or of a shared tile: 16 bytes from a multiple of 16
// bytes on lie side by side, whole rows do where the tile has no swizzle.
template <class T> TL_DEVICE T* address(const Element<T>& element) { return element.p; }
template <class T> TL_DEVICE T* address(T& element) { return &element; }
// Whether an element of a tensor lies inside it.
template <class T> TL_DEVICE bool inside(const Element<T>& element) { return element.inside; }

// The sum of the products of 4 bytes each.
TL_DEVICE int dp4a(const int8_t* a, const int8_t* b) {
  int sum = 0;
  TL_UNROLL
  for (int i = 0; i < 4; ++i) sum += int(a[i]) * int(b[i]);
  return sum;
}

}  // namespace tl
