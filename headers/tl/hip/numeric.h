// 16-bit floating-point types. half is clang's _Float16; bfloat16 is stored as bits and computed in float.
#pragma once
#include "../common/in_float.h"
#include "kernel.h"

namespace tl {

using half = _Float16;

// Converts implicitly from and to float, as CUDA's __nv_bfloat16 does; rounds to nearest even.
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  TL_BOTH bfloat16(float value) {
    const uint32_t word = __builtin_bit_cast(uint32_t, value);
    const bool is_nan = (word & 0x7fffffff) > 0x7f800000;
    bits = is_nan ? uint16_t(0x7fff) : static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  static TL_BOTH bfloat16 from_bits(uint16_t bits) { return __builtin_bit_cast(bfloat16, bits); }
  TL_BOTH operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
};

TL_COMPUTED_IN_FLOAT(bfloat16)

// Packed half arithmetic: v_pk_add_f16 and the like. [AMD CDNA3 ISA, "VOP3P Instructions"]
using half2 = half __attribute__((ext_vector_type(2)));
TL_DEVICE uint32_t add2(uint32_t a, uint32_t b, half) {
  return __builtin_bit_cast(uint32_t, __builtin_bit_cast(half2, a) + __builtin_bit_cast(half2, b));
}
TL_DEVICE uint32_t subtract2(uint32_t a, uint32_t b, half) {
  return __builtin_bit_cast(uint32_t, __builtin_bit_cast(half2, a) - __builtin_bit_cast(half2, b));
}
TL_DEVICE uint32_t multiply2(uint32_t a, uint32_t b, half) {
  return __builtin_bit_cast(uint32_t, __builtin_bit_cast(half2, a) * __builtin_bit_cast(half2, b));
}
// a b + c, rounded once.
TL_DEVICE uint32_t fma2(uint32_t a, uint32_t b, uint32_t c, half) {
  return __builtin_bit_cast(uint32_t,
                            __builtin_elementwise_fma(__builtin_bit_cast(half2, a), __builtin_bit_cast(half2, b),
                                                      __builtin_bit_cast(half2, c)));
}

// (a & mask) | bits; the lower, or the upper, 16 bits of both words, those of a in bits 0..15.
// [AMD CDNA3 ISA, "V_PERM_B32": bytes 4 to 7 are those of the first operand]
TL_DEVICE uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) { return (a & mask) | bits; }
TL_DEVICE uint32_t lower_halves(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x05040100); }
TL_DEVICE uint32_t upper_halves(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x07060302); }

// Returns `word`; CUDA's version is opaque to the compiler.
TL_DEVICE uint32_t whole_word(uint32_t word) { return word; }
// Byte i of a word in bits 0..7 and 16..23.
TL_DEVICE uint32_t byte_twice(uint32_t word, int i) { return (word >> 8 * i & 0xff) * 0x00010001u; }
// V_PERM_B32 takes 8-bit selectors; bytes_at takes 4-bit ones.
constexpr bool has_byte_tables = false;
TL_DEVICE uint32_t bytes_at(uint32_t a, uint32_t b, uint32_t places) {
  const uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  TL_UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint32_t place = places >> 4 * i & 15, byte = uint32_t(bytes >> 8 * (place & 7)) & 0xff;
    result |= (place & 8 ? (byte >> 7) * 0xff : byte) << 8 * i;
  }
  return result;
}
// Interleaves bytes 0 and 1, or 2 and 3, of both words; the bytes of a first.
TL_DEVICE uint32_t lower_bytes(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x05010400); }
TL_DEVICE uint32_t upper_bytes(uint32_t a, uint32_t b) { return __builtin_amdgcn_perm(b, a, 0x07030602); }
// sum + the dot product of the four signed bytes of a and b. [AMD CDNA3 ISA, "V_DOT4_I32_I8"]
TL_DEVICE int dot_of_bytes(uint32_t a, uint32_t b, int sum) {
  return __builtin_amdgcn_sdot4(static_cast<int>(a), static_cast<int>(b), sum, false);
}

// Converts two floats, each rounded to nearest even, into one register: `low` to bits 0..15.
template <class T> TL_DEVICE uint32_t pack2(float low, float high, T) {
  const T values[2] = {static_cast<T>(low), static_cast<T>(high)};
  return __builtin_bit_cast(uint32_t, values);
}
#if !defined(__gfx950__)
// Without v_cvt_pk_f16_f32, high * 1 + -0 by v_fma_mixhi_f16, which rounds to half and writes to the upper half of a
// register: two conversions and no v_pack_b32_f16. The compiler does not know the factors, or it would leave them out.
TL_DEVICE uint32_t pack2(float low, float high, half) {
  float one = 1.0f, minus_zero = -0.0f;
  asm("" : "+s"(one));
  asm("" : "+v"(minus_zero));
  return __builtin_bit_cast(uint32_t,
                            half2{static_cast<half>(low), static_cast<half>(__builtin_fmaf(high, one, minus_zero))});
}
#endif

}  // namespace tl
