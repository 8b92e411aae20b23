// What a kernel says while it runs.
#pragma once
#include "kernel.h"

namespace tl {

// Ends the kernel with an error. Without a device library there is no text. Any thread.
TL_DEVICE void assertion_failed(const char*) { __builtin_trap(); }

template <class Value> TL_DEVICE void print_line(const char*, int, int, int, int, Value) {
  static_assert(hip::lacks<Value>, "this target prints nothing from a kernel");
}

}  // namespace tl
