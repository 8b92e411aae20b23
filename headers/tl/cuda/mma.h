// mma.sync: d += a * b on registers. Called by: every lane of the warp.
// Lane l = 4 * g + t holds rows g and g + 8 of A (16 x k), column g of B (k x 8), and rows g and g + 8, columns 2t and
// 2t + 1 of D (16 x 8). In CuTe's notation, (thread, value) -> (row, column):
//   A, 16 bit: (T32,V8) -> (M16,K16)  ((4,8),(2,2,2)):((32,1),(16,8,128))
//   B, 16 bit: (T32,V4) -> (N8,K16)   ((4,8),(2,2)):((16,1),(8,64))
//   D:         (T32,V4) -> (M16,N8)   ((4,8),(2,2)):((32,1),(16,8))
// [PTX ISA, "Matrix multiply-accumulate operation using mma instruction", "Matrix Fragments for mma.m16n8k16" etc.]
#pragma once
#include "config.h"
#include "kernel.h"
#include "numeric.h"

namespace tl {

TL_DEVICE void mma_m16n8k16(float* d, const uint32_t* a, const uint32_t* b, half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
TL_DEVICE void mma_m16n8k16(float* d, const uint32_t* a, const uint32_t* b, bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// half accumulators: two registers of two elements each.
TL_DEVICE void mma_m16n8k16(uint32_t* d, const uint32_t* a, const uint32_t* b, half) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// A: (T32,V4) -> (M16,K8), B: (T32,V2) -> (N8,K8). The operands are the bits of floats; the low 13 bits are ignored.
TL_DEVICE void mma_m16n8k8_tf32(float* d, const uint32_t* a, const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// A: (T32,V16) -> (M16,K32), B: (T32,V8) -> (N8,K32), four int8 per register.
TL_DEVICE void mma_m16n8k32_int8(int32_t* d, const uint32_t* a, const uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// 2:4 sparse A: `metadata` selects two of each four consecutive elements along K. A has the registers of a dense A with
// half as many columns, B those of two consecutive dense instructions along K. With selector 0, metadata comes from
// lanes 4g and 4g + 1 for 16-bit elements, and from all four lanes of a quad for 8-bit elements.
// [PTX ISA, "Matrix Fragments for sparse mma.m16n8k32 with .f16 and .bf16 types", "... for sparse mma.m16n8k64 with
// .u8/.s8 integer type"]
TL_DEVICE void mma_sparse(float* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, half) {
  asm volatile(
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata));
}
TL_DEVICE void mma_sparse(float* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, bfloat16) {
  asm volatile(
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata));
}
TL_DEVICE void mma_sparse(int32_t* d, const uint32_t* a, const uint32_t* b, uint32_t metadata, int8_t) {
  asm volatile(
      "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata));
}
// 4-bit integer MMA, on sm_80 to sm_89 only: for later targets ptxas emulates one instruction by 190.
// A: (T32,V32) -> (M16,K64), B: (T32,V16) -> (N8,K64), eight integers per register.
// [PTX ISA, "Matrix Fragments for mma.m16n8k64"]
struct Int4Instructions {
  static constexpr bool exist = cuda::architecture < 90;

  static TL_DEVICE void mma_m16n8k64(int32_t* d, const uint32_t* a, const uint32_t* b, bool is_signed) {
    if (is_signed)
      asm volatile(
          "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
      asm volatile(
          "mma.sync.aligned.m16n8k64.row.col.s32.u4.u4.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
};
// A: (T32,V1) -> (M8,K4), B: (T32,V1) -> (N8,K4), D: (T32,V2) -> (M8,N8), row-major.
// [PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f64 floating point type"]
TL_DEVICE void mma_m8n8k4_double(double* d, double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d[0]), "+d"(d[1])
               : "d"(a), "d"(b));
}

}  // namespace tl
