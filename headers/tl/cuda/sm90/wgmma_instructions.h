// wgmma.mma_async m64nN for every N; K is 32 bytes. Each operand type has its own header, included on demand: each adds
// 0.05 s or more to a compilation.
// Called by: every thread of the warpgroup, between wgmma_fence and wgmma_commit.
// [PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async"]
#pragma once
#include "../../standard.h"
#include "../numeric.h"

namespace tl {
namespace cuda {

// Instruction selectors: E4M3 and E5M2 for float8 types, TF32 for float and tfloat32, HalfInHalf for half with half
// accumulators; other types select themselves.
struct TF32 {};
struct E4M3 {};
struct E5M2 {};
struct HalfInHalf {};
template <class Float8> struct WgmmaOperandOf {
  using type = std::conditional_t<Float8::is_e4m3, E4M3, E5M2>;
};
template <> struct WgmmaOperandOf<half> {
  using type = half;
};
template <class T, class Sum>
using WgmmaOperand = std::conditional_t<std::is_same<Sum, half>::value, HalfInHalf, typename WgmmaOperandOf<T>::type>;

// shared(): A and B by descriptor. registers(): A in four registers of two 16-bit elements each. a_mn, b_mn: the 16-bit
// operand is MN-major. d has n / 2 registers of float, or of int32_t for integers, or n / 4 registers of two halves;
// they are overwritten if `accumulate` is 0.
#ifdef __CUDA_ARCH__
template <int n, class Operand> struct WgmmaInstruction;
#else  // the host pass generates no kernel code: empty bodies save parsing all instructions
template <int n, class Operand> struct WgmmaInstruction {
  template <int a_mn, int b_mn, class Sum> static TL_DEVICE void shared(Sum*, uint64_t, uint64_t, int) {}
  template <int b_mn, class Sum> static TL_DEVICE void registers(Sum*, const uint32_t*, uint64_t, int) {}
};
#endif

// Accumulator operand lists: register names for the asm string, and constraints for N columns of float accumulators.
// Each list extends the one before. TL_SUM is the constraint of one register. The headers of the operand types use
// these macros.
#define TL_NAMES_8 "%0, %1, %2, %3"
#define TL_FOUR_SUMS(i) TL_SUM(d[i]), TL_SUM(d[i + 1]), TL_SUM(d[i + 2]), TL_SUM(d[i + 3])
#define TL_SUMS_8 TL_FOUR_SUMS(0)
#define TL_NAMES_16 TL_NAMES_8 ", %4, %5, %6, %7"
#define TL_SUMS_16 TL_SUMS_8, TL_FOUR_SUMS(4)
#define TL_NAMES_24 TL_NAMES_16 ", %8, %9, %10, %11"
#define TL_SUMS_24 TL_SUMS_16, TL_FOUR_SUMS(8)
#define TL_NAMES_32 TL_NAMES_24 ", %12, %13, %14, %15"
#define TL_SUMS_32 TL_SUMS_24, TL_FOUR_SUMS(12)
#define TL_NAMES_40 TL_NAMES_32 ", %16, %17, %18, %19"
#define TL_SUMS_40 TL_SUMS_32, TL_FOUR_SUMS(16)
#define TL_NAMES_48 TL_NAMES_40 ", %20, %21, %22, %23"
#define TL_SUMS_48 TL_SUMS_40, TL_FOUR_SUMS(20)
#define TL_NAMES_56 TL_NAMES_48 ", %24, %25, %26, %27"
#define TL_SUMS_56 TL_SUMS_48, TL_FOUR_SUMS(24)
#define TL_NAMES_64 TL_NAMES_56 ", %28, %29, %30, %31"
#define TL_SUMS_64 TL_SUMS_56, TL_FOUR_SUMS(28)
#define TL_NAMES_72 TL_NAMES_64 ", %32, %33, %34, %35"
#define TL_SUMS_72 TL_SUMS_64, TL_FOUR_SUMS(32)
#define TL_NAMES_80 TL_NAMES_72 ", %36, %37, %38, %39"
#define TL_SUMS_80 TL_SUMS_72, TL_FOUR_SUMS(36)
#define TL_NAMES_88 TL_NAMES_80 ", %40, %41, %42, %43"
#define TL_SUMS_88 TL_SUMS_80, TL_FOUR_SUMS(40)
#define TL_NAMES_96 TL_NAMES_88 ", %44, %45, %46, %47"
#define TL_SUMS_96 TL_SUMS_88, TL_FOUR_SUMS(44)
#define TL_NAMES_104 TL_NAMES_96 ", %48, %49, %50, %51"
#define TL_SUMS_104 TL_SUMS_96, TL_FOUR_SUMS(48)
#define TL_NAMES_112 TL_NAMES_104 ", %52, %53, %54, %55"
#define TL_SUMS_112 TL_SUMS_104, TL_FOUR_SUMS(52)
#define TL_NAMES_120 TL_NAMES_112 ", %56, %57, %58, %59"
#define TL_SUMS_120 TL_SUMS_112, TL_FOUR_SUMS(56)
#define TL_NAMES_128 TL_NAMES_120 ", %60, %61, %62, %63"
#define TL_SUMS_128 TL_SUMS_120, TL_FOUR_SUMS(60)
#define TL_NAMES_136 TL_NAMES_128 ", %64, %65, %66, %67"
#define TL_SUMS_136 TL_SUMS_128, TL_FOUR_SUMS(64)
#define TL_NAMES_144 TL_NAMES_136 ", %68, %69, %70, %71"
#define TL_SUMS_144 TL_SUMS_136, TL_FOUR_SUMS(68)
#define TL_NAMES_152 TL_NAMES_144 ", %72, %73, %74, %75"
#define TL_SUMS_152 TL_SUMS_144, TL_FOUR_SUMS(72)
#define TL_NAMES_160 TL_NAMES_152 ", %76, %77, %78, %79"
#define TL_SUMS_160 TL_SUMS_152, TL_FOUR_SUMS(76)
#define TL_NAMES_168 TL_NAMES_160 ", %80, %81, %82, %83"
#define TL_SUMS_168 TL_SUMS_160, TL_FOUR_SUMS(80)
#define TL_NAMES_176 TL_NAMES_168 ", %84, %85, %86, %87"
#define TL_SUMS_176 TL_SUMS_168, TL_FOUR_SUMS(84)
#define TL_NAMES_184 TL_NAMES_176 ", %88, %89, %90, %91"
#define TL_SUMS_184 TL_SUMS_176, TL_FOUR_SUMS(88)
#define TL_NAMES_192 TL_NAMES_184 ", %92, %93, %94, %95"
#define TL_SUMS_192 TL_SUMS_184, TL_FOUR_SUMS(92)
#define TL_NAMES_200 TL_NAMES_192 ", %96, %97, %98, %99"
#define TL_SUMS_200 TL_SUMS_192, TL_FOUR_SUMS(96)
#define TL_NAMES_208 TL_NAMES_200 ", %100, %101, %102, %103"
#define TL_SUMS_208 TL_SUMS_200, TL_FOUR_SUMS(100)
#define TL_NAMES_216 TL_NAMES_208 ", %104, %105, %106, %107"
#define TL_SUMS_216 TL_SUMS_208, TL_FOUR_SUMS(104)
#define TL_NAMES_224 TL_NAMES_216 ", %108, %109, %110, %111"
#define TL_SUMS_224 TL_SUMS_216, TL_FOUR_SUMS(108)
#define TL_NAMES_232 TL_NAMES_224 ", %112, %113, %114, %115"
#define TL_SUMS_232 TL_SUMS_224, TL_FOUR_SUMS(112)
#define TL_NAMES_240 TL_NAMES_232 ", %116, %117, %118, %119"
#define TL_SUMS_240 TL_SUMS_232, TL_FOUR_SUMS(116)
#define TL_NAMES_248 TL_NAMES_240 ", %120, %121, %122, %123"
#define TL_SUMS_248 TL_SUMS_240, TL_FOUR_SUMS(120)
#define TL_NAMES_256 TL_NAMES_248 ", %124, %125, %126, %127"
#define TL_SUMS_256 TL_SUMS_248, TL_FOUR_SUMS(124)

// The accumulators as asm operands: two halves per 32-bit register.
TL_DEVICE float* wgmma_registers(float* d) { return d; }
TL_DEVICE uint32_t* wgmma_registers(half* d) { return reinterpret_cast<uint32_t*>(d); }

// `types`: K and the types in the instruction's name; `list`: the length of the accumulator lists; i0...: the operand
// numbers after the accumulators.
#define TL_WGMMA_16(T, Sum, types, list, n, i0, i1, i2, i3, i4, i5, i6)                                                \
  template <> struct WgmmaInstruction<n, T> {                                                                          \
    template <int a_mn, int b_mn> static TL_DEVICE void shared(Sum* sums, uint64_t a, uint64_t b, int accumulate) {    \
      auto* const d = wgmma_registers(sums);                                                                           \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n types         \
                   " {" TL_NAMES_##list "}, %" #i0 ", %" #i1 ", p, 1, 1, %" #i3 ", %" #i4 ";\n}"                       \
                   : TL_SUMS_##list                                                                                    \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(a_mn), "n"(b_mn));                                           \
    }                                                                                                                  \
    template <int b_mn> static TL_DEVICE void registers(Sum* sums, const uint32_t* a, uint64_t b, int accumulate) {    \
      auto* const d = wgmma_registers(sums);                                                                           \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n types         \
                   " {" TL_NAMES_##list "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", p, 1, 1, %" #i6 ";\n}" \
                   : TL_SUMS_##list                                                                                    \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(b_mn));                  \
    }                                                                                                                  \
  };
// 8-bit and 32-bit operands; `factors`: imm-scale-a and imm-scale-b, if the instruction has them.
#define TL_WGMMA_K(T, Sum, types, factors, n, i0, i1, i2)                                                        \
  template <> struct WgmmaInstruction<n, T> {                                                                    \
    template <int a_mn, int b_mn> static TL_DEVICE void shared(Sum* d, uint64_t a, uint64_t b, int accumulate) { \
      static_assert(!a_mn && !b_mn, "8-bit and 32-bit operands are K-major");                                    \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n types   \
                   " {" TL_NAMES_##n "}, %" #i0 ", %" #i1 ", p" factors ";\n}"                                   \
                   : TL_SUMS_##n                                                                                 \
                   : "l"(a), "l"(b), "r"(accumulate));                                                           \
    }                                                                                                            \
  };
#ifdef __CUDA_ARCH__
#define TL_EVERY_WIDTH(TL_WGMMA)                   \
  TL_WGMMA(8, 4, 5, 6, 7, 8, 9, 10)                \
  TL_WGMMA(16, 8, 9, 10, 11, 12, 13, 14)           \
  TL_WGMMA(24, 12, 13, 14, 15, 16, 17, 18)         \
  TL_WGMMA(32, 16, 17, 18, 19, 20, 21, 22)         \
  TL_WGMMA(40, 20, 21, 22, 23, 24, 25, 26)         \
  TL_WGMMA(48, 24, 25, 26, 27, 28, 29, 30)         \
  TL_WGMMA(56, 28, 29, 30, 31, 32, 33, 34)         \
  TL_WGMMA(64, 32, 33, 34, 35, 36, 37, 38)         \
  TL_WGMMA(72, 36, 37, 38, 39, 40, 41, 42)         \
  TL_WGMMA(80, 40, 41, 42, 43, 44, 45, 46)         \
  TL_WGMMA(88, 44, 45, 46, 47, 48, 49, 50)         \
  TL_WGMMA(96, 48, 49, 50, 51, 52, 53, 54)         \
  TL_WGMMA(104, 52, 53, 54, 55, 56, 57, 58)        \
  TL_WGMMA(112, 56, 57, 58, 59, 60, 61, 62)        \
  TL_WGMMA(120, 60, 61, 62, 63, 64, 65, 66)        \
  TL_WGMMA(128, 64, 65, 66, 67, 68, 69, 70)        \
  TL_WGMMA(136, 68, 69, 70, 71, 72, 73, 74)        \
  TL_WGMMA(144, 72, 73, 74, 75, 76, 77, 78)        \
  TL_WGMMA(152, 76, 77, 78, 79, 80, 81, 82)        \
  TL_WGMMA(160, 80, 81, 82, 83, 84, 85, 86)        \
  TL_WGMMA(168, 84, 85, 86, 87, 88, 89, 90)        \
  TL_WGMMA(176, 88, 89, 90, 91, 92, 93, 94)        \
  TL_WGMMA(184, 92, 93, 94, 95, 96, 97, 98)        \
  TL_WGMMA(192, 96, 97, 98, 99, 100, 101, 102)     \
  TL_WGMMA(200, 100, 101, 102, 103, 104, 105, 106) \
  TL_WGMMA(208, 104, 105, 106, 107, 108, 109, 110) \
  TL_WGMMA(216, 108, 109, 110, 111, 112, 113, 114) \
  TL_WGMMA(224, 112, 113, 114, 115, 116, 117, 118) \
  TL_WGMMA(232, 116, 117, 118, 119, 120, 121, 122) \
  TL_WGMMA(240, 120, 121, 122, 123, 124, 125, 126) \
  TL_WGMMA(248, 124, 125, 126, 127, 128, 129, 130) \
  TL_WGMMA(256, 128, 129, 130, 131, 132, 133, 134)
#else
#define TL_EVERY_WIDTH(TL_WGMMA)
#endif
#define TL_SUM(r) "+f"(r)

}  // namespace cuda
}  // namespace tl
