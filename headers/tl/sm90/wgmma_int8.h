// wgmma of int8 and uint8. Included in addition to tl.h.
#pragma once
#include "../tl.h"

#if defined(__CUDACC__)
#include "../cuda/sm90/wgmma_int8.h"
#endif

namespace tl {
template <> constexpr bool has_wgmma<int8_t> = true;
template <> constexpr bool has_wgmma<uint8_t> = true;
}  // namespace tl
