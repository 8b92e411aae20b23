// wgmma of tf32 operands. Included in addition to tl.h.
#pragma once
#include "../tl.h"

#if defined(__CUDACC__)
#include "../cuda/sm90/wgmma_tfloat32.h"
#endif

namespace tl {
template <> constexpr bool has_wgmma<float> = true;
template <> constexpr bool has_wgmma<tfloat32> = true;
}  // namespace tl
