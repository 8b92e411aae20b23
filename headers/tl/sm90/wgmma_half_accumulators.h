// wgmma of half with half accumulators. Included in addition to tl.h.
#pragma once
#include "../tl.h"

#if defined(__CUDACC__)
#include "../cuda/sm90/wgmma_half_accumulators.h"
#endif

namespace tl {
template <> constexpr bool has_wgmma<half, half> = true;
}  // namespace tl
