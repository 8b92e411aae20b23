// 4-bit elements. In memory two share a byte (packed.h); in registers each occupies one byte.
#pragma once
#include "../standard.h"
#include "../primitives.h"

namespace tl {

// -8..7, or 0..15. Conversions from integers keep the low 4 bits; conversions from floating-point numbers truncate to
// an integer first.
template <bool is_signed_> struct Int4 {
  static constexpr bool is_signed = is_signed_;
  int8_t number;

  Int4() = default;
  template <class X, class = std::enable_if_t<std::is_arithmetic<X>::value>>
  TL_DEVICE Int4(X x) : number(from_bits(static_cast<uint8_t>(static_cast<int>(x))).number) {}
  TL_DEVICE explicit Int4(Int4<!is_signed> x) : number(from_bits(x.bits()).number) {}
  TL_DEVICE operator int() const { return number; }
  TL_DEVICE uint8_t bits() const { return number & 15; }
  static TL_DEVICE Int4 from_bits(uint8_t bits) {
    Int4 value;
    value.number =
        is_signed ? static_cast<int8_t>(static_cast<int8_t>(bits << 4) >> 4) : static_cast<int8_t>(bits & 15);
    return value;
  }
};
using int4_t = Int4<true>;
using uint4_t = Int4<false>;

// A sign bit, two exponent bits and one mantissa bit: 0, 0.5, 1, 1.5, 2, 3, 4 and 6. Conversions round to nearest even
// and saturate, infinity too; NaN becomes 6.
// [OCP Microscaling Formats Specification, "FP4"; PTX ISA, "cvt": .e2m1x2 with .satfinite]
struct float4_e2m1 {
  uint8_t code;

  float4_e2m1() = default;
  TL_DEVICE float4_e2m1(float value) {
    const float size = value < 0 ? -value : value;
    const int nearest = !(size <= 0.25f) + !(size < 0.75f) + !(size <= 1.25f) + !(size < 1.75f) + !(size <= 2.5f) +
                        !(size < 3.5f) + !(size <= 5.0f);
    code = static_cast<uint8_t>(nearest | (has_sign(value) ? 8 : 0));
  }
  TL_DEVICE operator float() const {
    const uint32_t size = code & 7;
    const uint32_t word = size < 2 ? size * 0x3f000000u : (size << 22) + (126u << 23);
    return float_of(word | static_cast<uint32_t>(code & 8) << 28);
  }
  TL_DEVICE uint8_t bits() const { return code; }
  static TL_DEVICE float4_e2m1 from_bits(uint8_t bits) {
    float4_e2m1 value;
    value.code = bits & 15;
    return value;
  }

 private:
  static TL_DEVICE bool has_sign(float value) {
    uint32_t word;
    __builtin_memcpy(&word, &value, sizeof word);
    return word >> 31 != 0 && value == value;
  }
  static TL_DEVICE float float_of(uint32_t word) {
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
  }
};

template <class T> constexpr bool is_int4 = false;
template <bool is_signed> constexpr bool is_int4<Int4<is_signed>> = true;
// Elements that share bytes of memory.
template <class T>
constexpr bool is_packed = is_int4<std::remove_const_t<T>> || std::is_same<std::remove_const_t<T>, float4_e2m1>::value;

}  // namespace tl
