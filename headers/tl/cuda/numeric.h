// 16-bit floating-point types, and packed operations.
#pragma once
#include "../standard.h"
#include "../common/in_float.h"
#include "kernel.h"
#ifdef TL_CUDA_HALF  // for inline user code that uses CUDA's type
#include <cuda_fp16.h>
#endif

namespace tl {

#ifdef TL_CUDA_HALF
using half = __half;
#else
// Bit-compatible with CUDA's __half, and computed by the same instructions; <cuda_fp16.h> adds 0.25 s to each
// compilation.
// [PTX ISA, "Half Precision Floating Point Instructions"; "Data Movement and Conversion Instructions: cvt"]
struct half {
  uint16_t bits;
  half() = default;
  TL_DEVICE half(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  TL_DEVICE operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
  static TL_DEVICE half from_bits(uint16_t bits) {
    half value;
    value.bits = bits;
    return value;
  }
};
#define TL_HALF_ARITHMETIC(operation, instruction)                                      \
  TL_DEVICE half operator operation(half a, half b) {                                   \
    half result;                                                                        \
    asm(instruction ".f16 %0, %1, %2;" : "=h"(result.bits) : "h"(a.bits), "h"(b.bits)); \
    return result;                                                                      \
  }
TL_HALF_ARITHMETIC(+, "add")
TL_HALF_ARITHMETIC(-, "sub")
TL_HALF_ARITHMETIC(*, "mul")
#undef TL_HALF_ARITHMETIC
TL_DEVICE half operator/(half a, half b) { return half(float(a) / float(b)); }
TL_DEVICE half& operator+=(half& a, half b) { return a = a + b; }
TL_DEVICE half& operator-=(half& a, half b) { return a = a - b; }
TL_DEVICE half& operator*=(half& a, half b) { return a = a * b; }
TL_DEVICE half& operator/=(half& a, half b) { return a = a / b; }
TL_DEVICE half operator-(half a) { return half::from_bits(static_cast<uint16_t>(a.bits ^ 0x8000)); }
#define TL_HALF_COMPARISON(operation, instruction)                                        \
  TL_DEVICE bool operator operation(half a, half b) {                                     \
    uint16_t holds;                                                                       \
    asm("{.reg .pred p;\n\tsetp." instruction ".f16 p, %1, %2;\n\tselp.u16 %0, 1, 0, p;}" \
        : "=h"(holds)                                                                     \
        : "h"(a.bits), "h"(b.bits));                                                      \
    return holds != 0;                                                                    \
  }
TL_HALF_COMPARISON(==, "eq")
TL_HALF_COMPARISON(!=, "neu")
TL_HALF_COMPARISON(<, "lt")
TL_HALF_COMPARISON(<=, "le")
TL_HALF_COMPARISON(>, "gt")
TL_HALF_COMPARISON(>=, "ge")
#undef TL_HALF_COMPARISON
#endif

// Converts two floats, each rounded to nearest even, into one register by one instruction: `low` to bits 0..15.
// [PTX ISA, "Data Movement and Conversion Instructions: cvt"]
TL_DEVICE uint32_t pack2(float low, float high, half) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

// Packed half arithmetic, rounded to nearest even. The compiler may contract a multiplication and an addition to an
// FMA, as for floats.
// [PTX ISA, "Half Precision Floating Point Instructions": add, sub, mul, .f16x2]
TL_DEVICE uint32_t add2(uint32_t a, uint32_t b, half) {
  uint32_t sums;
  asm("add.f16x2 %0, %1, %2;" : "=r"(sums) : "r"(a), "r"(b));
  return sums;
}
TL_DEVICE uint32_t subtract2(uint32_t a, uint32_t b, half) {
  uint32_t differences;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(differences) : "r"(a), "r"(b));
  return differences;
}
TL_DEVICE uint32_t multiply2(uint32_t a, uint32_t b, half) {
  uint32_t products;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(products) : "r"(a), "r"(b));
  return products;
}
// a b + c, rounded once.
TL_DEVICE uint32_t fma2(uint32_t a, uint32_t b, uint32_t c, half) {
  uint32_t sums;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sums) : "r"(a), "r"(b), "r"(c));
  return sums;
}

// (a & mask) | bits in one lop3, which the compiler does not form if mask and bits are constants.
// [PTX ISA, "Logic and Shift Instructions: lop3"]
TL_DEVICE uint32_t and_or(uint32_t a, uint32_t mask, uint32_t bits) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(a), "r"(mask), "r"(bits));
  return result;
}
// The lower, or the upper, 16 bits of both words; those of a in bits 0..15.
// [PTX ISA, "Data Movement and Conversion Instructions: prmt"]
TL_DEVICE uint32_t lower_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5410); }
TL_DEVICE uint32_t upper_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7632); }
// Returns `word`, opaque to the compiler: a select of packed halves then takes one instruction per register, instead of
// one prmt per half.
TL_DEVICE uint32_t whole_word(uint32_t word) {
  asm("" : "+r"(word));
  return word;
}
// Byte i of a word in bits 0..7 and 16..23.
TL_DEVICE uint32_t byte_twice(uint32_t word, int i) { return __byte_perm(word, 0, 0x4040 | i * 0x0101); }
// Byte i of the result is byte n of the eight bytes (a, b), n = bits 4 i .. 4 i + 2 of `places`; if bit 4 i + 3 is set,
// it is filled with that byte's sign bit. [same section]
constexpr bool has_byte_tables = true;  // one prmt
TL_DEVICE uint32_t bytes_at(uint32_t a, uint32_t b, uint32_t places) {
  uint32_t bytes;  // __byte_perm ignores bit 4 i + 3
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(places));
  return bytes;
}
// Interleaves bytes 0 and 1, or 2 and 3, of both words; the bytes of a first.
TL_DEVICE uint32_t lower_bytes(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5140); }
TL_DEVICE uint32_t upper_bytes(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7362); }
// sum + the dot product of the four signed bytes of a and b. [PTX ISA, "Integer Arithmetic Instructions: dp4a"]
TL_DEVICE int dot_of_bytes(uint32_t a, uint32_t b, int sum) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), sum);
}

// bfloat16: bit-compatible with __nv_bfloat16; <cuda_bf16.h> adds 0.2 s to each compilation.
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  TL_DEVICE bfloat16(float value) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  TL_DEVICE operator float() const { return __uint_as_float(static_cast<uint32_t>(bits) << 16); }
  static TL_DEVICE bfloat16 from_bits(uint16_t bits) {
    bfloat16 value;
    value.bits = bits;
    return value;
  }
};
TL_DEVICE uint32_t pack2(float low, float high, bfloat16) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

TL_COMPUTED_IN_FLOAT(bfloat16)

}  // namespace tl
