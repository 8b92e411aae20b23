// wgmma of bfloat16. Included in addition to tl.h.
#pragma once
#include "../tl.h"

#if defined(__CUDACC__)
#include "../cuda/sm90/wgmma_bfloat16.h"
#endif

namespace tl {
template <> constexpr bool has_wgmma<bfloat16> = true;
}  // namespace tl
