// wgmma.mma_async m64nNk16 for every N: 64 x N floats += 64 x 16 times 16 x N, half or bfloat16.
// Who: every thread of the warpgroup, between wgmma_fence and wgmma_commit.
// [PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async"]
#pragma once
#include "../numeric.h"

namespace tl {
namespace cuda {

// shared(): A and B by descriptor; registers(): A in four registers of two elements each. `mn` says that an operand has
// M or N contiguous instead of K. d has n / 2 registers; they are overwritten when `accumulate` is 0.
template <int n, class T> struct WgmmaInstruction;

// The accumulators' registers: their names in the text, and the operands. Each list continues the one before.
#define TL_NAMES_8 "%0, %1, %2, %3"
#define TL_FLOATS_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define TL_FLOATS_8 TL_FLOATS_4(0)
#define TL_NAMES_16 TL_NAMES_8 ", %4, %5, %6, %7"
#define TL_FLOATS_16 TL_FLOATS_8, TL_FLOATS_4(4)
#define TL_NAMES_24 TL_NAMES_16 ", %8, %9, %10, %11"
#define TL_FLOATS_24 TL_FLOATS_16, TL_FLOATS_4(8)
#define TL_NAMES_32 TL_NAMES_24 ", %12, %13, %14, %15"
#define TL_FLOATS_32 TL_FLOATS_24, TL_FLOATS_4(12)
#define TL_NAMES_40 TL_NAMES_32 ", %16, %17, %18, %19"
#define TL_FLOATS_40 TL_FLOATS_32, TL_FLOATS_4(16)
#define TL_NAMES_48 TL_NAMES_40 ", %20, %21, %22, %23"
#define TL_FLOATS_48 TL_FLOATS_40, TL_FLOATS_4(20)
#define TL_NAMES_56 TL_NAMES_48 ", %24, %25, %26, %27"
#define TL_FLOATS_56 TL_FLOATS_48, TL_FLOATS_4(24)
#define TL_NAMES_64 TL_NAMES_56 ", %28, %29, %30, %31"
#define TL_FLOATS_64 TL_FLOATS_56, TL_FLOATS_4(28)
#define TL_NAMES_72 TL_NAMES_64 ", %32, %33, %34, %35"
#define TL_FLOATS_72 TL_FLOATS_64, TL_FLOATS_4(32)
#define TL_NAMES_80 TL_NAMES_72 ", %36, %37, %38, %39"
#define TL_FLOATS_80 TL_FLOATS_72, TL_FLOATS_4(36)
#define TL_NAMES_88 TL_NAMES_80 ", %40, %41, %42, %43"
#define TL_FLOATS_88 TL_FLOATS_80, TL_FLOATS_4(40)
#define TL_NAMES_96 TL_NAMES_88 ", %44, %45, %46, %47"
#define TL_FLOATS_96 TL_FLOATS_88, TL_FLOATS_4(44)
#define TL_NAMES_104 TL_NAMES_96 ", %48, %49, %50, %51"
#define TL_FLOATS_104 TL_FLOATS_96, TL_FLOATS_4(48)
#define TL_NAMES_112 TL_NAMES_104 ", %52, %53, %54, %55"
#define TL_FLOATS_112 TL_FLOATS_104, TL_FLOATS_4(52)
#define TL_NAMES_120 TL_NAMES_112 ", %56, %57, %58, %59"
#define TL_FLOATS_120 TL_FLOATS_112, TL_FLOATS_4(56)
#define TL_NAMES_128 TL_NAMES_120 ", %60, %61, %62, %63"
#define TL_FLOATS_128 TL_FLOATS_120, TL_FLOATS_4(60)
#define TL_NAMES_136 TL_NAMES_128 ", %64, %65, %66, %67"
#define TL_FLOATS_136 TL_FLOATS_128, TL_FLOATS_4(64)
#define TL_NAMES_144 TL_NAMES_136 ", %68, %69, %70, %71"
#define TL_FLOATS_144 TL_FLOATS_136, TL_FLOATS_4(68)
#define TL_NAMES_152 TL_NAMES_144 ", %72, %73, %74, %75"
#define TL_FLOATS_152 TL_FLOATS_144, TL_FLOATS_4(72)
#define TL_NAMES_160 TL_NAMES_152 ", %76, %77, %78, %79"
#define TL_FLOATS_160 TL_FLOATS_152, TL_FLOATS_4(76)
#define TL_NAMES_168 TL_NAMES_160 ", %80, %81, %82, %83"
#define TL_FLOATS_168 TL_FLOATS_160, TL_FLOATS_4(80)
#define TL_NAMES_176 TL_NAMES_168 ", %84, %85, %86, %87"
#define TL_FLOATS_176 TL_FLOATS_168, TL_FLOATS_4(84)
#define TL_NAMES_184 TL_NAMES_176 ", %88, %89, %90, %91"
#define TL_FLOATS_184 TL_FLOATS_176, TL_FLOATS_4(88)
#define TL_NAMES_192 TL_NAMES_184 ", %92, %93, %94, %95"
#define TL_FLOATS_192 TL_FLOATS_184, TL_FLOATS_4(92)
#define TL_NAMES_200 TL_NAMES_192 ", %96, %97, %98, %99"
#define TL_FLOATS_200 TL_FLOATS_192, TL_FLOATS_4(96)
#define TL_NAMES_208 TL_NAMES_200 ", %100, %101, %102, %103"
#define TL_FLOATS_208 TL_FLOATS_200, TL_FLOATS_4(100)
#define TL_NAMES_216 TL_NAMES_208 ", %104, %105, %106, %107"
#define TL_FLOATS_216 TL_FLOATS_208, TL_FLOATS_4(104)
#define TL_NAMES_224 TL_NAMES_216 ", %108, %109, %110, %111"
#define TL_FLOATS_224 TL_FLOATS_216, TL_FLOATS_4(108)
#define TL_NAMES_232 TL_NAMES_224 ", %112, %113, %114, %115"
#define TL_FLOATS_232 TL_FLOATS_224, TL_FLOATS_4(112)
#define TL_NAMES_240 TL_NAMES_232 ", %116, %117, %118, %119"
#define TL_FLOATS_240 TL_FLOATS_232, TL_FLOATS_4(116)
#define TL_NAMES_248 TL_NAMES_240 ", %120, %121, %122, %123"
#define TL_FLOATS_248 TL_FLOATS_240, TL_FLOATS_4(120)
#define TL_NAMES_256 TL_NAMES_248 ", %124, %125, %126, %127"
#define TL_FLOATS_256 TL_FLOATS_248, TL_FLOATS_4(124)

// `types` are the operands' as the instruction's name spells them, i0 and on the numbers after the accumulators'.
#define TL_WGMMA_OF(T, types, n, i0, i1, i2, i3, i4, i5, i6)                                                         \
  template <> struct WgmmaInstruction<n, T> {                                                                        \
    template <int a_mn, int b_mn> static TL_DEVICE void shared(float* d, uint64_t a, uint64_t b, int accumulate) {   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16" types \
                   " {" TL_NAMES_##n "}, %" #i0 ", %" #i1 ", p, 1, 1, %" #i3 ", %" #i4 ";\n}"                        \
                   : TL_FLOATS_##n                                                                                   \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(a_mn), "n"(b_mn));                                         \
    }                                                                                                                \
    template <int b_mn> static TL_DEVICE void registers(float* d, const uint32_t* a, uint64_t b, int accumulate) {   \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #i5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #n "k16" types \
                   " {" TL_NAMES_##n "}, {%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}, %" #i4 ", p, 1, 1, %" #i6 ";\n}"  \
                   : TL_FLOATS_##n                                                                                   \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(b_mn));                \
    }                                                                                                                \
  };
#define TL_WGMMA(...)                            \
  TL_WGMMA_OF(half, ".f32.f16.f16", __VA_ARGS__) \
  TL_WGMMA_OF(bfloat16, ".f32.bf16.bf16", __VA_ARGS__)
TL_WGMMA(8, 4, 5, 6, 7, 8, 9, 10)
TL_WGMMA(16, 8, 9, 10, 11, 12, 13, 14)
TL_WGMMA(24, 12, 13, 14, 15, 16, 17, 18)
TL_WGMMA(32, 16, 17, 18, 19, 20, 21, 22)
TL_WGMMA(40, 20, 21, 22, 23, 24, 25, 26)
TL_WGMMA(48, 24, 25, 26, 27, 28, 29, 30)
TL_WGMMA(56, 28, 29, 30, 31, 32, 33, 34)
TL_WGMMA(64, 32, 33, 34, 35, 36, 37, 38)
TL_WGMMA(72, 36, 37, 38, 39, 40, 41, 42)
TL_WGMMA(80, 40, 41, 42, 43, 44, 45, 46)
TL_WGMMA(88, 44, 45, 46, 47, 48, 49, 50)
TL_WGMMA(96, 48, 49, 50, 51, 52, 53, 54)
TL_WGMMA(104, 52, 53, 54, 55, 56, 57, 58)
TL_WGMMA(112, 56, 57, 58, 59, 60, 61, 62)
TL_WGMMA(120, 60, 61, 62, 63, 64, 65, 66)
TL_WGMMA(128, 64, 65, 66, 67, 68, 69, 70)
TL_WGMMA(136, 68, 69, 70, 71, 72, 73, 74)
TL_WGMMA(144, 72, 73, 74, 75, 76, 77, 78)
TL_WGMMA(152, 76, 77, 78, 79, 80, 81, 82)
TL_WGMMA(160, 80, 81, 82, 83, 84, 85, 86)
TL_WGMMA(168, 84, 85, 86, 87, 88, 89, 90)
TL_WGMMA(176, 88, 89, 90, 91, 92, 93, 94)
TL_WGMMA(184, 92, 93, 94, 95, 96, 97, 98)
TL_WGMMA(192, 96, 97, 98, 99, 100, 101, 102)
TL_WGMMA(200, 100, 101, 102, 103, 104, 105, 106)
TL_WGMMA(208, 104, 105, 106, 107, 108, 109, 110)
TL_WGMMA(216, 108, 109, 110, 111, 112, 113, 114)
TL_WGMMA(224, 112, 113, 114, 115, 116, 117, 118)
TL_WGMMA(232, 116, 117, 118, 119, 120, 121, 122)
TL_WGMMA(240, 120, 121, 122, 123, 124, 125, 126)
TL_WGMMA(248, 124, 125, 126, 127, 128, 129, 130)
TL_WGMMA(256, 128, 129, 130, 131, 132, 133, 134)
#undef TL_WGMMA
#undef TL_WGMMA_OF
#undef TL_FLOATS_4
#undef TL_NAMES_8
#undef TL_FLOATS_8
#undef TL_NAMES_16
#undef TL_FLOATS_16
#undef TL_NAMES_24
#undef TL_FLOATS_24
#undef TL_NAMES_32
#undef TL_FLOATS_32
#undef TL_NAMES_40
#undef TL_FLOATS_40
#undef TL_NAMES_48
#undef TL_FLOATS_48
#undef TL_NAMES_56
#undef TL_FLOATS_56
#undef TL_NAMES_64
#undef TL_FLOATS_64
#undef TL_NAMES_72
#undef TL_FLOATS_72
#undef TL_NAMES_80
#undef TL_FLOATS_80
#undef TL_NAMES_88
#undef TL_FLOATS_88
#undef TL_NAMES_96
#undef TL_FLOATS_96
#undef TL_NAMES_104
#undef TL_FLOATS_104
#undef TL_NAMES_112
#undef TL_FLOATS_112
#undef TL_NAMES_120
#undef TL_FLOATS_120
#undef TL_NAMES_128
#undef TL_FLOATS_128
#undef TL_NAMES_136
#undef TL_FLOATS_136
#undef TL_NAMES_144
#undef TL_FLOATS_144
#undef TL_NAMES_152
#undef TL_FLOATS_152
#undef TL_NAMES_160
#undef TL_FLOATS_160
#undef TL_NAMES_168
#undef TL_FLOATS_168
#undef TL_NAMES_176
#undef TL_FLOATS_176
#undef TL_NAMES_184
#undef TL_FLOATS_184
#undef TL_NAMES_192
#undef TL_FLOATS_192
#undef TL_NAMES_200
#undef TL_FLOATS_200
#undef TL_NAMES_208
#undef TL_FLOATS_208
#undef TL_NAMES_216
#undef TL_FLOATS_216
#undef TL_NAMES_224
#undef TL_FLOATS_224
#undef TL_NAMES_232
#undef TL_FLOATS_232
#undef TL_NAMES_240
#undef TL_FLOATS_240
#undef TL_NAMES_248
#undef TL_FLOATS_248
#undef TL_NAMES_256
#undef TL_FLOATS_256

}  // namespace cuda
}  // namespace tl
