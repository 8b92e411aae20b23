// wgmma of int8 and uint8: see wgmma_instructions.h.
#pragma once
#include "wgmma_instructions.h"

namespace tl {
namespace cuda {

template <> struct WgmmaOperandOf<int8_t> {
  using type = int8_t;
};
template <> struct WgmmaOperandOf<uint8_t> {
  using type = uint8_t;
};

#undef TL_SUM
#define TL_SUM(r) "+r"(r)
#define TL_WGMMA_INT8(n, i0, i1, i2, ...) TL_WGMMA_K(int8_t, int32_t, "k32.s32.s8.s8", "", n, i0, i1, i2)
TL_EVERY_WIDTH(TL_WGMMA_INT8)
#define TL_WGMMA_UINT8(n, i0, i1, i2, ...) TL_WGMMA_K(uint8_t, int32_t, "k32.s32.u8.u8", "", n, i0, i1, i2)
TL_EVERY_WIDTH(TL_WGMMA_UINT8)
#undef TL_WGMMA_INT8
#undef TL_WGMMA_UINT8
#undef TL_SUM
#define TL_SUM(r) "+f"(r)

}  // namespace cuda
}  // namespace tl
