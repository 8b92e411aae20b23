// Scalar mathematical functions. The *_approx functions denote approximate instructions (ex2.approx.ftz and the
// like) and are computed by the C library. exp2, log2, rsqrt and reciprocal flush subnormal operands, exp2 and
// reciprocal also subnormal results.
#pragma once
#include <cmath>
#include "kernel.h"
#include "../common/truncate.h"

namespace tl {
namespace host {
TL_DEVICE float flush(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
}  // namespace host

TL_DEVICE float exp2_approx(float x) { return host::flush(std::exp2(host::flush(x))); }
TL_DEVICE float log2_approx(float x) { return std::log2(host::flush(x)); }
TL_DEVICE float rsqrt_approx(float x) { return 1.0f / std::sqrt(host::flush(x)); }
TL_DEVICE float tanh_approx(float x) { return std::tanh(x); }
TL_DEVICE float reciprocal_approx(float x) { return host::flush(1.0f / host::flush(x)); }
TL_DEVICE float divide_rounded(float a, float b) { return a / b; }
TL_DEVICE float sin_approx(float x) { return std::sin(x); }
TL_DEVICE float cos_approx(float x) { return std::cos(x); }
template <class To, class From> TL_DEVICE To truncate(From x) { return saturating_truncate<To>(x); }

}  // namespace tl
