// Conversion and MMA instructions of the OCP 8-bit floating-point formats, from sm_89 on.
#pragma once
#include "config.h"
#include "kernel.h"

namespace tl {

struct Float8Instructions {
  template <bool is_fnuz> static constexpr bool exist = cuda::architecture >= 89 && !is_fnuz;
  // sm_90 and sm_100 have no mma.sync for these types: ptxas emulates it by 16-bit MMAs with a zero accumulator and
  // separate additions (seen in nvdisasm output). Converting to half first lets the MMA accumulate.
  template <bool is_fnuz>
  static constexpr bool multiply = exist<is_fnuz> && (cuda::architecture < 90 || cuda::architecture >= 120);

  // Converts two floats, rounded to nearest even and saturated; `low` to bits 0..7.
  // [PTX ISA, "Data Movement and Conversion Instructions: cvt"]
  static TL_DEVICE uint16_t from_floats(float low, float high, bool is_e4m3) {
    uint16_t pair;
    if (is_e4m3)
      asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    else
      asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
    return pair;
  }
  // Converts to two halves; exact.
  static TL_DEVICE uint32_t to_halves(uint16_t pair, bool is_e4m3) {
    uint32_t halves;
    if (is_e4m3)
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    else
      asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return halves;
  }
  // Converts the four elements of a register: the first two to `low`, the last two to `high`.
  static TL_DEVICE void to_halves(uint32_t four, uint32_t& low, uint32_t& high, bool is_e4m3) {
    if (is_e4m3)
      asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e4m3x2 %0, l; cvt.rn.f16x2.e4m3x2 %1, h; }"
          : "=r"(low), "=r"(high)
          : "r"(four));
    else
      asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.rn.f16x2.e5m2x2 %0, l; cvt.rn.f16x2.e5m2x2 %1, h; }"
          : "=r"(low), "=r"(high)
          : "r"(four));
  }
  // d += a * b; the fragments of m16n8k32 with int8. Called by: every lane of the warp.
  // [PTX ISA, "Matrix Fragments for mma.m16n8k32"]
  static TL_DEVICE void mma_m16n8k32(float* d, const uint32_t* a, const uint32_t* b, bool is_e4m3) {
    if (is_e4m3)
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  // The same with a 2:4 sparse A; registers and metadata as for int8. [PTX ISA, "mma.sp", .e4m3 and .e5m2]
  static TL_DEVICE void mma_sparse(float* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, bool is_e4m3) {
    if (is_e4m3)
      asm volatile(
          "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, "
          "{%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata));
    else
      asm volatile(
          "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e5m2.e5m2.f32 {%0, %1, %2, %3}, "
          "{%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata));
  }
};

}  // namespace tl
