// Addresses of elements, for inline user code. Any thread.
#pragma once
#include "packet.h"

namespace tl {

// The address of an element of a tensor, which must be in bounds, or of a shared tile. Each 16-byte aligned group of 16
// bytes is contiguous; whole rows are contiguous if the tile has no swizzle.
template <class T> TL_DEVICE T* address(const Element<T>& element) { return element.p; }
template <class T> TL_DEVICE T* address(T& element) { return &element; }
// Whether an element of a tensor is in bounds.
template <class T> TL_DEVICE bool inside(const Element<T>& element) { return element.inside; }

// The dot product of two vectors of 4 bytes.
TL_DEVICE int dp4a(const int8_t* a, const int8_t* b) {
  int sum = 0;
  TL_UNROLL
  for (int i = 0; i < 4; ++i) sum += int(a[i]) * int(b[i]);
  return sum;
}

}  // namespace tl
