// The parts of the C++ standard library that kernels use: fixed-width integers, type traits, printf.
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
