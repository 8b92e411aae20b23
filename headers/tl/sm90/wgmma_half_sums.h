// Products of half with sums in half on wgmma. What includes tl.h and has such products includes this, too.
#pragma once
#include "../tl.h"

#if defined(__CUDACC__)
#include "../cuda/sm90/wgmma_half_sums.h"
#endif

namespace tl {
template <> constexpr bool has_wgmma<half, half> = true;
}  // namespace tl
