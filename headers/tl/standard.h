// What kernels use of the C++ standard library: fixed-width integers, questions about types, printf.
#pragma once
#if defined(__CUDACC_RTC__)
#include "cuda/nvrtc.h"
#else
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>
#endif
