// tf32: floats that tensor cores read without rounding.
#pragma once
#include "../primitives.h"

namespace tl {

// A float with 10 explicit mantissa bits. Conversion rounds to nearest, ties away from zero, as cvt.rna.tf32.f32. [PTX
// ISA, "Alternate Floating-Point Data Formats: tf32"]
struct tfloat32 {
  float value;

  tfloat32() = default;
  TL_DEVICE tfloat32(float x) {
    uint32_t word;
    __builtin_memcpy(&word, &x, sizeof word);
    if ((word & 0x7f800000) != 0x7f800000) word = (word + 0x1000) & 0xffffe000;
    __builtin_memcpy(&value, &word, sizeof word);
  }
  TL_DEVICE operator float() const { return value; }
};

}  // namespace tl
