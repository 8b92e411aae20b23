// 8-bit floating-point instructions: the CPU has none. Conversions use integer arithmetic, MMAs half, except sparse
// MMAs, which the engine computes.
#pragma once
#include "engine.h"
#include "kernel.h"

namespace tl {

struct Float8Instructions {
  template <bool is_fnuz> static constexpr bool exist = false;
  template <bool is_fnuz> static constexpr bool multiply = false;
  static uint16_t from_floats(float low, float high, bool is_e4m3);
  static uint32_t to_halves(uint16_t pair, bool is_e4m3);
  static void to_halves(uint32_t four, uint32_t& low, uint32_t& high, bool is_e4m3);
  static void mma_m16n8k32(float* d, const uint32_t* a, const uint32_t* b, bool is_e4m3);
  static TL_DEVICE void mma_sparse(float* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, bool is_e4m3) {
    tl_engine_mma_sparse(d, a, b, metadata, is_e4m3 ? TL_ENGINE_E4M3 : TL_ENGINE_E5M2);
  }
};

}  // namespace tl
