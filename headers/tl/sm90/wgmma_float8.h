// wgmma of the 8-bit floating-point types. Included in addition to tl.h.
#pragma once
#include "../tl.h"

#if defined(__CUDACC__)
#include "../cuda/sm90/wgmma_float8.h"
#endif

namespace tl {
template <> constexpr bool has_wgmma<float8_e4m3> = true;
template <> constexpr bool has_wgmma<float8_e5m2> = true;
}  // namespace tl
