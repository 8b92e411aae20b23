// Assertions and printing in kernels. Any thread.
#pragma once
#include <cstdio>
#include "engine.h"
#include "kernel.h"

namespace tl {

// Reports a finding and aborts the launch.
TL_DEVICE void assertion_failed(const char* message) { tl_engine_assertion_failed(message); }

// As printf, flushed: the output interleaves with Python's in program order.
template <class... Values> TL_DEVICE void print_text(const char* format, Values... values) {
  printf(format, values...);
  fflush(stdout);
}

}  // namespace tl
