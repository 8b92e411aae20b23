// half and bfloat16 on a CPU. Conversions round to nearest even. Arithmetic is computed in float and rounded once,
// which is correctly rounded because float has at least 2 * 11 + 2 mantissa bits (24).
#pragma once
#include <cstdint>
#include <cstring>
#include "../common/in_float.h"
#include "engine.h"
#include "kernel.h"

namespace tl {
namespace host {

template <class To, class From> inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// The NaN result of cvt.rn.f16.f32 and cvt.rn.bf16.f32; a payload that marks an unwritten value is preserved: its least
// significant bit becomes bit `shift` of the quiet NaN `quiet`.
inline uint16_t converted_nan(float value, uint16_t quiet, int shift) {
  const uint32_t payload = bit_cast<uint32_t>(value) >> 16 & 0x3f;
  const bool is_marked = payload == TL_ENGINE_PAYLOAD_UNWRITTEN || payload == TL_ENGINE_PAYLOAD_COMPUTED;
  return is_marked ? uint16_t(quiet | payload << shift) : uint16_t(0x7fff);
}

// IEEE binary32 to binary16 in integer arithmetic. Subnormal results round by adding a float whose ulp is 2^-24.
inline uint16_t float_to_half_portable(float value) {
  const uint32_t word = bit_cast<uint32_t>(value);
  const uint32_t sign = word >> 16 & 0x8000, magnitude = word & 0x7fffffff;
  if (magnitude > 0x7f800000) return converted_nan(value, 0x7e00, 3);
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);  // rounds to infinity
  if (magnitude < 0x38800000) {                                 // below 2^-14
    const float shifted = bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (bit_cast<uint32_t>(shifted) - 0x3f000000));
  }
  const uint32_t odd = magnitude >> 13 & 1;
  return uint16_t(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
}

inline float half_to_float_portable(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity, or NaN made quiet
    const uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return bit_cast<float>(sign | 0x7f800000 | quiet | (magnitude & 0x3ff) << 13);
  }
  if (magnitude < 0x400) {
    const float value = float(magnitude) * 0x1p-24f;
    return bit_cast<float>(sign | bit_cast<uint32_t>(value));
  }
  return bit_cast<float>(sign | ((magnitude << 13) + 0x38000000));
}

#if defined(__F16C__)
// The types of F16C's instructions. Their functions, _cvtss_sh and _cvtsh_ss, are in immintrin.h, whose thousands of
// others would take a tenth of a kernel's compile time, precompiled too.
typedef float Floats __attribute__((vector_size(16)));
typedef short Halves __attribute__((vector_size(16)));
#endif

inline uint16_t float_to_half(float value) {
#if defined(__F16C__)
  constexpr int kNearestEven = 0;
  return value != value ? converted_nan(value, 0x7e00, 3)
                        : uint16_t(__builtin_ia32_vcvtps2ph(Floats{value, 0, 0, 0}, kNearestEven)[0]);
#else
  return float_to_half_portable(value);
#endif
}

inline float half_to_float(uint16_t bits) {
#if defined(__F16C__)
  return __builtin_ia32_vcvtph2ps(Halves{short(bits), 0, 0, 0, 0, 0, 0, 0})[0];
#else
  return half_to_float_portable(bits);
#endif
}

inline uint16_t float_to_bfloat16(float value) {
  const uint32_t word = bit_cast<uint32_t>(value);
  if ((word & 0x7fffffff) > 0x7f800000) return converted_nan(value, 0x7fc0, 0);
  return uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

inline float bfloat16_to_float(uint16_t bits) { return bit_cast<float>(uint32_t(bits) << 16); }

}  // namespace host

// Convert implicitly from and to float, as CUDA's __half and __nv_bfloat16 do.
struct half {
  uint16_t bits;
  half() = default;
  half(float value) : bits(host::float_to_half(value)) {}
  operator float() const { return host::half_to_float(bits); }
  static half from_bits(uint16_t bits) { return host::bit_cast<half>(bits); }
};

struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  bfloat16(float value) : bits(host::float_to_bfloat16(value)) {}
  operator float() const { return host::bfloat16_to_float(bits); }
  static bfloat16 from_bits(uint16_t bits) { return host::bit_cast<bfloat16>(bits); }
};

TL_COMPUTED_IN_FLOAT(half)
TL_COMPUTED_IN_FLOAT(bfloat16)

// Converts two floats, each rounded to nearest even, into one register: `low` to bits 0..15.
inline uint32_t pack2(float low, float high, half) { return half(low).bits | uint32_t(half(high).bits) << 16; }
inline uint32_t pack2(float low, float high, bfloat16) {
  return bfloat16(low).bits | uint32_t(bfloat16(high).bits) << 16;
}

// Packed half arithmetic.
template <class Operation> inline uint32_t on_pairs(uint32_t a, uint32_t b, Operation operation) {
  half x[2], y[2], result[2];
  std::memcpy(static_cast<void*>(x), &a, sizeof a), std::memcpy(static_cast<void*>(y), &b, sizeof b);
  for (int i = 0; i < 2; ++i) result[i] = operation(x[i], y[i]);
  uint32_t packed;
  std::memcpy(&packed, result, sizeof packed);
  return packed;
}
inline uint32_t add2(uint32_t a, uint32_t b, half) {
  return on_pairs(a, b, [](half x, half y) { return x + y; });
}
inline uint32_t subtract2(uint32_t a, uint32_t b, half) {
  return on_pairs(a, b, [](half x, half y) { return x - y; });
}
inline uint32_t multiply2(uint32_t a, uint32_t b, half) {
  return on_pairs(a, b, [](half x, half y) { return x * y; });
}
// a b + c, rounded once.
inline uint32_t fma2(uint32_t a, uint32_t b, uint32_t c, half) {
  half x[2], y[2], z[2], result[2];
  std::memcpy(static_cast<void*>(x), &a, sizeof a), std::memcpy(static_cast<void*>(y), &b, sizeof b);
  std::memcpy(static_cast<void*>(z), &c, sizeof c);
  for (int i = 0; i < 2; ++i) result[i] = half(float(double(float(x[i])) * float(y[i]) + float(z[i])));
  uint32_t packed;
  std::memcpy(&packed, result, sizeof packed);
  return packed;
}

// (a & mask) | bits; the lower, or the upper, 16 bits of both words, those of a in bits 0..15.
inline uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) { return (a & mask) | bits; }
inline uint32_t lower_halves(uint32_t a, uint32_t b) { return (a & 0xffff) | b << 16; }
inline uint32_t upper_halves(uint32_t a, uint32_t b) { return a >> 16 | (b & 0xffff0000); }

// Returns `word`; CUDA's version is opaque to the compiler.
inline uint32_t whole_word(uint32_t word) { return word; }
// Byte i of a word in bits 0..7 and 16..23.
inline uint32_t byte_twice(uint32_t word, int i) { return (word >> 8 * i & 0xff) * 0x00010001u; }
// Byte i of the result is byte n of the eight bytes (a, b), n = bits 4 i .. 4 i + 2 of `places`; if bit 4 i + 3 is set,
// it is filled with that byte's sign bit.
constexpr bool has_byte_tables = true;
inline uint32_t bytes_at(uint32_t a, uint32_t b, uint32_t places) {
  const uint64_t eight = uint64_t(b) << 32 | a;
  uint32_t bytes = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t place = places >> 4 * i, byte = uint32_t(eight >> 8 * (place & 7)) & 0xff;
    bytes |= (place & 8 ? (byte >> 7) * 0xff : byte) << 8 * i;
  }
  return bytes;
}
// Interleaves bytes 0 and 1, or 2 and 3, of both words; the bytes of a first.
inline uint32_t lower_bytes(uint32_t a, uint32_t b) {
  return (a & 0xff) | (b & 0xff) << 8 | (a & 0xff00) << 8 | (b & 0xff00) << 16;
}
inline uint32_t upper_bytes(uint32_t a, uint32_t b) { return lower_bytes(a >> 16, b >> 16); }
// sum + the dot product of the four signed bytes of a and b.
inline int dot_of_bytes(uint32_t a, uint32_t b, int sum) {
  for (int i = 0; i < 32; i += 8) sum += int(int8_t(a >> i)) * int(int8_t(b >> i));
  return sum;
}

}  // namespace tl
