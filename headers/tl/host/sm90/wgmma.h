// wgmma on the CPU engine: as cuda/sm90/wgmma.h.
#pragma once
#include "../engine.h"
#include "../kernel.h"
#include "../memory.h"

namespace tl {

TL_DEVICE uint64_t wgmma_descriptor(const void* p, int leading_bytes, int stride_bytes) {
  const uint64_t address = (shared_address(p) & 0x3ffff) >> 4;
  return address | uint64_t(leading_bytes / 16) << 16 | uint64_t(stride_bytes / 16) << 32 | uint64_t(1) << 62;
}
TL_DEVICE void wgmma_fence() { tl_engine_wgmma_fence(); }
TL_DEVICE void wgmma_commit() { tl_engine_wgmma_commit(); }
template <int n> TL_DEVICE void wgmma_wait() { tl_engine_wgmma_wait(n); }
template <int n> TL_DEVICE void wgmma_m64k16(float (&d)[n / 2], uint64_t a, uint64_t b, bool accumulate, half) {
  tl_engine_wgmma(d, a, b, n, accumulate, TL_ENGINE_HALF);
}
template <int n> TL_DEVICE void wgmma_m64k16(float (&d)[n / 2], uint64_t a, uint64_t b, bool accumulate, bfloat16) {
  tl_engine_wgmma(d, a, b, n, accumulate, TL_ENGINE_BFLOAT16);
}
template <int n> TL_DEVICE void give_registers() {}
template <int n> TL_DEVICE void take_registers() {}

}  // namespace tl
