// Atomic additions to elements of tensors and shared tiles.
#pragma once
#include "packet.h"

namespace tl {

// C(i, j) += v as one indivisible step, relaxed; dropped outside the tensor. Any thread.
template <class T, class X> TL_DEVICE void atomic_add(const Element<T>& to, const X& x) {
  if (to.inside) atomic_add(to.p, convert<T>(value(x)));
}
template <class T, class X>
TL_DEVICE std::enable_if_t<std::is_arithmetic<T>::value || is_small_float<T>> atomic_add(T& to, const X& x) {
  atomic_add(&to, convert<T>(value(x)));
}

}  // namespace tl
