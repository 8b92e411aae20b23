// Conversion instructions of the 8-bit floating-point formats: FNUZ on gfx942, OCP on gfx950, none on gfx90a.
// [AMD Instinct MI300 and CDNA4 ISA, "V_CVT_PK_F32_FP8", "V_CVT_PK_FP8_F32", and those of BF8]
#pragma once
#include "kernel.h"
#include "numeric.h"

namespace tl {

struct Float8Instructions {
#if defined(__gfx942__)
  template <bool is_fnuz> static constexpr bool exist = is_fnuz;
  static constexpr float highest_e4m3 = 240.0f;
#elif defined(__gfx950__)
  template <bool is_fnuz> static constexpr bool exist = !is_fnuz;
  static constexpr float highest_e4m3 = 448.0f;
#else
  template <bool is_fnuz> static constexpr bool exist = false;
  static constexpr float highest_e4m3 = 0.0f;
#endif
  template <bool is_fnuz> static constexpr bool multiply = exist<is_fnuz>;

  // Converts two floats, rounded to nearest even and saturated; `low` to bits 0..7. The instruction converts overflow
  // to NaN unless the MODE register selects saturation, so the operands are clamped first.
  static TL_DEVICE uint16_t from_floats(float low, float high, bool is_e4m3) {
    const float highest = is_e4m3 ? highest_e4m3 : 57344.0f;
    low = saturated(low, highest), high = saturated(high, highest);
    return static_cast<uint16_t>(is_e4m3 ? __builtin_amdgcn_cvt_pk_fp8_f32(low, high, 0, false)
                                         : __builtin_amdgcn_cvt_pk_bf8_f32(low, high, 0, false));
  }
  // Converts to two halves; exact.
  static TL_DEVICE uint32_t to_halves(uint16_t pair, bool is_e4m3) {
    const auto floats =
        is_e4m3 ? __builtin_amdgcn_cvt_pk_f32_fp8(pair, false) : __builtin_amdgcn_cvt_pk_f32_bf8(pair, false);
    return pack2(floats[0], floats[1], half());
  }
  // Converts the four elements of a register: the first two to `low`, the last two to `high`.
  static TL_DEVICE void to_halves(uint32_t four, uint32_t& low, uint32_t& high, bool is_e4m3) {
    low = to_halves(static_cast<uint16_t>(four), is_e4m3);
    high = to_halves(static_cast<uint16_t>(four >> 16), is_e4m3);
  }
  static void mma_m16n8k32(float* d, const uint32_t* a, const uint32_t* b, bool is_e4m3);
  static void mma_sparse(float* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, bool is_e4m3);

 private:
  static TL_DEVICE float saturated(float value, float highest) {
    return __builtin_isnan(value) ? value : __builtin_amdgcn_fmed3f(value, -highest, highest);
  }
};

}  // namespace tl
