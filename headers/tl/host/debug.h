// What a kernel says while it runs. Any thread.
#pragma once
#include <cstdio>
#include "engine.h"
#include "kernel.h"

namespace tl {

// A finding, and the end of the launch.
TL_DEVICE void assertion_failed(const char* message) { tl_engine_assertion_failed(message); }

// As printf, at once: Python's own output goes between. Any thread.
template <class... Values> TL_DEVICE void print_text(const char* format, Values... values) {
  printf(format, values...);
  fflush(stdout);
}

}  // namespace tl
