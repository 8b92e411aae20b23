// 8-bit floating point: storage types and MMA operands. Arithmetic is computed in float.
#pragma once
#include "../standard.h"
#include "../primitives.h"

namespace tl {

// `mantissa` explicit mantissa bits, exponent bias `bias`, and the bits of the largest finite number. Conversions round
// to nearest even and saturate to the largest finite number, infinity too. NaN becomes 0x7f; with is_fnuz ("finite,
// NaN, unsigned zero") NaN is 0x80, which is negative zero in the other formats, and no code is an infinity.
// [OCP 8-bit Floating Point Specification; PTX ISA, "cvt": .satfinite; AMD Instinct MI300 ISA, "FP8 and BF8"]
template <int mantissa_, int bias_, int highest_digits_, bool is_fnuz_> struct Float8 {
  static constexpr int mantissa = mantissa_, bias = bias_, highest_digits = highest_digits_;
  static constexpr bool is_e4m3 = mantissa == 3, is_fnuz = is_fnuz_;
  // Whether the target has conversion instructions for this format.
  static constexpr bool has_instructions = Float8Instructions::exist<is_fnuz>;
  static constexpr bool has_products = Float8Instructions::multiply<is_fnuz>;
  uint8_t bits;

  Float8() = default;
  TL_DEVICE Float8(float value) : bits(from_float(value)) {}
  TL_DEVICE operator float() const { return to_float(bits); }
  static TL_DEVICE Float8 from_bits(uint8_t bits) {
    Float8 value;
    value.bits = bits;
    return value;
  }

  static TL_DEVICE uint8_t from_float(float value) {
    if constexpr (has_instructions)
      return static_cast<uint8_t>(Float8Instructions::from_floats(value, 0, is_e4m3));
    else
      return rounded(value);
  }
  static TL_DEVICE float to_float(uint8_t bits) {
    if constexpr (has_instructions) {
      const auto low = static_cast<uint16_t>(Float8Instructions::to_halves(bits, is_e4m3));
      half exact;
      __builtin_memcpy(static_cast<void*>(&exact), &low, sizeof low);
      return static_cast<float>(exact);
    } else {
      return widened(bits);
    }
  }
  // Converts two elements, the first in bits 0..7: from floats, and to halves.
  static TL_DEVICE uint16_t pair(float low, float high) {
    if constexpr (has_instructions)
      return Float8Instructions::from_floats(low, high, is_e4m3);
    else
      return static_cast<uint16_t>(rounded(low) | rounded(high) << 8);
  }
  static TL_DEVICE uint32_t halves(uint16_t pair) {
    if constexpr (has_instructions)
      return Float8Instructions::to_halves(pair, is_e4m3);
    else
      return halves_of(lower_bytes(0, pair));
  }

  // Converts the four elements of a register to two pairs for MMAs, which take k in any order: elements 0 and 1, and 2
  // and 3; e4m3 without instructions 0 and 2, and 1 and 3, as each byte then is in the upper or lower one of a half.
  static TL_DEVICE void halves(uint32_t four, uint32_t& first, uint32_t& second) {
    if constexpr (has_instructions) {
      Float8Instructions::to_halves(four, first, second, is_e4m3);
    } else if constexpr (is_e4m3 && !is_fnuz) {
      first = scaled_e4m3((four << 8 & 0x80008000) | (four << 7 & 0x3f803f80));
      second = scaled_e4m3((four & 0x80008000) | (four >> 1 & 0x3f803f80));
    } else {
      first = halves_of(lower_bytes(0, four));
      second = halves_of(upper_bytes(0, four));
    }
  }

 private:
  static TL_DEVICE uint32_t word_of(float value) {
    uint32_t word;
    __builtin_memcpy(&word, &value, sizeof word);
    return word;
  }
  static TL_DEVICE float float_of(uint32_t word) {
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
  }
  // Two halves, of which each upper byte is an element.
  static TL_DEVICE uint32_t halves_of(uint32_t in_upper) {
    if constexpr (!is_e4m3 && !is_fnuz)
      return in_upper;
    else if constexpr (is_e4m3)
      return halves_of_e4m3(in_upper);
    else
      return halves_of_e5m2fnuz(in_upper);
  }
  // Shifts the mantissa to its position in a half. A multiplication by a power of two adjusts the exponent bias, also
  // for subnormal numbers. NaN is 0x7f, or 0x80 with is_fnuz.
  static TL_DEVICE uint32_t halves_of_e4m3(uint32_t in_upper) {
    const uint32_t sign = in_upper & 0x80008000, size = in_upper >> 1 & 0x3f803f80;
    if constexpr (is_fnuz) {
      const uint32_t nan = (0x40004000 - size) & sign >> 1;
      return multiply2(sign | size | ((nan << 1) - (nan >> 5)), 0x58005800, half());  // 128, twice
    } else {
      return scaled_e4m3(sign | size);
    }
  }
  // 256 times the shifted elements. 0x7f, NaN, is 1.875 there, of which 35,072 times is infinite; of the largest
  // number, 1.75, it is 61,376. Zero times that is added: infinity gives NaN, others keep their sign.
  static TL_DEVICE uint32_t scaled_e4m3(uint32_t shifted) {
    const uint32_t exact = multiply2(shifted, 0x5c005c00, half());          // 256, twice
    return fma2(multiply2(shifted, 0x78487848, half()), 0, exact, half());  // 35,072, twice
  }
  // The exponent bias is one larger than that of half: the exponent field is decremented, or the result becomes
  // subnormal.
  static TL_DEVICE uint32_t halves_of_e5m2fnuz(uint32_t in_upper) {
    const uint32_t sign = in_upper & 0x80008000, size = in_upper & 0x7f007f00;
    const uint32_t is_normal = (size + 0x78007800) & 0x80008000, normal = is_normal - (is_normal >> 15);
    const uint32_t lower = ((size | 0x80008000) - 0x04000400) & normal, denormal = size >> 1 & ~normal;
    const uint32_t nan = (0x80008000 - size) & sign;
    return sign | lower | denormal | (nan - (nan >> 6));
  }
  // Below the smallest normal number, the addition of `anchor` rounds: its ulp equals the spacing of the subnormal
  // numbers.
  static TL_DEVICE uint8_t rounded(float value) {
    constexpr uint32_t smallest = static_cast<uint32_t>(128 - bias) << 23;
    constexpr uint32_t anchor = static_cast<uint32_t>(127 + 1 - bias - mantissa + 23) << 23;
    const uint32_t word = word_of(value), sign = word >> 24 & 0x80, size = word & 0x7fffffff;
    if (size > 0x7f800000) return is_fnuz ? 0x80 : 0x7f;
    if (size < smallest) {
      const uint32_t few_digits = word_of(float_of(size) + float_of(anchor)) - anchor;
      return static_cast<uint8_t>(is_fnuz && few_digits == 0 ? 0 : sign | few_digits);
    }
    const uint32_t odd = size >> (23 - mantissa) & 1, half_digit = (1u << (22 - mantissa)) - 1;
    const uint32_t digits = ((size + half_digit + odd) >> (23 - mantissa)) - ((127 - bias) << mantissa);
    return static_cast<uint8_t>(sign | (digits > highest_digits ? highest_digits : digits));
  }
  static TL_DEVICE float widened(uint8_t bits) {
    constexpr uint32_t infinite = is_fnuz ? 0x80 : is_e4m3 ? 0x7f : 0x7c;
    constexpr uint32_t last_digit = static_cast<uint32_t>(127 + 1 - bias - mantissa) << 23;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24, size = bits & 0x7f;
    if (is_fnuz && bits == 0x80) return float_of(0x7fffffff);
    if (size >= infinite) return float_of(sign | (size == 0x7c ? 0x7f800000 : 0x7fffffff));
    if (size < 1u << mantissa) return float_of(sign | word_of(static_cast<float>(size) * float_of(last_digit)));
    return float_of(sign | ((size << (23 - mantissa)) + (static_cast<uint32_t>(127 - bias) << 23)));
  }
};
// Maximum 448, no infinity; maximum 57344.
using float8_e4m3 = Float8<3, 7, 0x7e, false>;
using float8_e5m2 = Float8<2, 15, 0x7b, false>;
// Maximum 240; maximum 57344.
using float8_e4m3fnuz = Float8<3, 8, 0x7f, true>;
using float8_e5m2fnuz = Float8<2, 16, 0x7f, true>;

// A power of two, 2^-127 to 2^127, as block scales are: an exponent without sign and mantissa. A conversion takes the
// magnitude, rounds up, and saturates; the code 0xff is NaN.
// [OCP Microscaling Formats, 5.4.1; PTX ISA, "cvt": .rp.satfinite.ue8m0x2.f32]
struct float8_e8m0 {
  uint8_t bits;

  float8_e8m0() = default;
  TL_DEVICE float8_e8m0(float value) : bits(from_float(value)) {}
  TL_DEVICE operator float() const {
    const uint32_t word = bits == 0xff ? 0x7fffffffu : bits == 0 ? 0x00400000u : static_cast<uint32_t>(bits) << 23;
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
  }
  static TL_DEVICE float8_e8m0 from_bits(uint8_t bits) {
    float8_e8m0 value;
    value.bits = bits;
    return value;
  }
  static TL_DEVICE uint8_t from_float(float value) {
    uint32_t word;
    __builtin_memcpy(&word, &value, sizeof word);
    const uint32_t size = word & 0x7fffffff;
    if (size > 0x7f800000) return 0xff;
    const uint32_t code = size <= 0x00400000 ? 0 : (size + 0x007fffff) >> 23;
    return static_cast<uint8_t>(code > 0xfe ? 0xfe : code);
  }
};

template <class T> constexpr bool is_float8 = false;
template <int m, int b, int h, bool f> constexpr bool is_float8<Float8<m, b, h, f>> = true;

}  // namespace tl
