// wgmma of half with half accumulators, two per register: see wgmma_instructions.h.
#pragma once
#include "wgmma_instructions.h"

namespace tl {
namespace cuda {

#ifdef __CUDA_ARCH__
// Register lists for half accumulators, which take half as many registers as float: the lengths that
// wgmma_instructions.h lacks.
#define TL_NAMES_4 "%0, %1"
#define TL_SUMS_4 TL_SUM(d[0]), TL_SUM(d[1])
#define TL_NAMES_12 TL_NAMES_8 ", %4, %5"
#define TL_SUMS_12 TL_SUMS_8, TL_SUM(d[4]), TL_SUM(d[5])
#define TL_NAMES_20 TL_NAMES_16 ", %8, %9"
#define TL_SUMS_20 TL_SUMS_16, TL_SUM(d[8]), TL_SUM(d[9])
#define TL_NAMES_28 TL_NAMES_24 ", %12, %13"
#define TL_SUMS_28 TL_SUMS_24, TL_SUM(d[12]), TL_SUM(d[13])
#define TL_NAMES_36 TL_NAMES_32 ", %16, %17"
#define TL_SUMS_36 TL_SUMS_32, TL_SUM(d[16]), TL_SUM(d[17])
#define TL_NAMES_44 TL_NAMES_40 ", %20, %21"
#define TL_SUMS_44 TL_SUMS_40, TL_SUM(d[20]), TL_SUM(d[21])
#define TL_NAMES_52 TL_NAMES_48 ", %24, %25"
#define TL_SUMS_52 TL_SUMS_48, TL_SUM(d[24]), TL_SUM(d[25])
#define TL_NAMES_60 TL_NAMES_56 ", %28, %29"
#define TL_SUMS_60 TL_SUMS_56, TL_SUM(d[28]), TL_SUM(d[29])
#define TL_NAMES_68 TL_NAMES_64 ", %32, %33"
#define TL_SUMS_68 TL_SUMS_64, TL_SUM(d[32]), TL_SUM(d[33])
#define TL_NAMES_76 TL_NAMES_72 ", %36, %37"
#define TL_SUMS_76 TL_SUMS_72, TL_SUM(d[36]), TL_SUM(d[37])
#define TL_NAMES_84 TL_NAMES_80 ", %40, %41"
#define TL_SUMS_84 TL_SUMS_80, TL_SUM(d[40]), TL_SUM(d[41])
#define TL_NAMES_92 TL_NAMES_88 ", %44, %45"
#define TL_SUMS_92 TL_SUMS_88, TL_SUM(d[44]), TL_SUM(d[45])
#define TL_NAMES_100 TL_NAMES_96 ", %48, %49"
#define TL_SUMS_100 TL_SUMS_96, TL_SUM(d[48]), TL_SUM(d[49])
#define TL_NAMES_108 TL_NAMES_104 ", %52, %53"
#define TL_SUMS_108 TL_SUMS_104, TL_SUM(d[52]), TL_SUM(d[53])
#define TL_NAMES_116 TL_NAMES_112 ", %56, %57"
#define TL_SUMS_116 TL_SUMS_112, TL_SUM(d[56]), TL_SUM(d[57])
#define TL_NAMES_124 TL_NAMES_120 ", %60, %61"
#define TL_SUMS_124 TL_SUMS_120, TL_SUM(d[60]), TL_SUM(d[61])
#undef TL_SUM
#define TL_SUM(r) "+r"(r)
#define TL_WGMMA_HALF_SUMS(...) TL_WGMMA_16(HalfInHalf, half, "k16.f16.f16.f16", __VA_ARGS__)
TL_WGMMA_HALF_SUMS(4, 8, 2, 3, 4, 5, 6, 7, 8)
TL_WGMMA_HALF_SUMS(8, 16, 4, 5, 6, 7, 8, 9, 10)
TL_WGMMA_HALF_SUMS(12, 24, 6, 7, 8, 9, 10, 11, 12)
TL_WGMMA_HALF_SUMS(16, 32, 8, 9, 10, 11, 12, 13, 14)
TL_WGMMA_HALF_SUMS(20, 40, 10, 11, 12, 13, 14, 15, 16)
TL_WGMMA_HALF_SUMS(24, 48, 12, 13, 14, 15, 16, 17, 18)
TL_WGMMA_HALF_SUMS(28, 56, 14, 15, 16, 17, 18, 19, 20)
TL_WGMMA_HALF_SUMS(32, 64, 16, 17, 18, 19, 20, 21, 22)
TL_WGMMA_HALF_SUMS(36, 72, 18, 19, 20, 21, 22, 23, 24)
TL_WGMMA_HALF_SUMS(40, 80, 20, 21, 22, 23, 24, 25, 26)
TL_WGMMA_HALF_SUMS(44, 88, 22, 23, 24, 25, 26, 27, 28)
TL_WGMMA_HALF_SUMS(48, 96, 24, 25, 26, 27, 28, 29, 30)
TL_WGMMA_HALF_SUMS(52, 104, 26, 27, 28, 29, 30, 31, 32)
TL_WGMMA_HALF_SUMS(56, 112, 28, 29, 30, 31, 32, 33, 34)
TL_WGMMA_HALF_SUMS(60, 120, 30, 31, 32, 33, 34, 35, 36)
TL_WGMMA_HALF_SUMS(64, 128, 32, 33, 34, 35, 36, 37, 38)
TL_WGMMA_HALF_SUMS(68, 136, 34, 35, 36, 37, 38, 39, 40)
TL_WGMMA_HALF_SUMS(72, 144, 36, 37, 38, 39, 40, 41, 42)
TL_WGMMA_HALF_SUMS(76, 152, 38, 39, 40, 41, 42, 43, 44)
TL_WGMMA_HALF_SUMS(80, 160, 40, 41, 42, 43, 44, 45, 46)
TL_WGMMA_HALF_SUMS(84, 168, 42, 43, 44, 45, 46, 47, 48)
TL_WGMMA_HALF_SUMS(88, 176, 44, 45, 46, 47, 48, 49, 50)
TL_WGMMA_HALF_SUMS(92, 184, 46, 47, 48, 49, 50, 51, 52)
TL_WGMMA_HALF_SUMS(96, 192, 48, 49, 50, 51, 52, 53, 54)
TL_WGMMA_HALF_SUMS(100, 200, 50, 51, 52, 53, 54, 55, 56)
TL_WGMMA_HALF_SUMS(104, 208, 52, 53, 54, 55, 56, 57, 58)
TL_WGMMA_HALF_SUMS(108, 216, 54, 55, 56, 57, 58, 59, 60)
TL_WGMMA_HALF_SUMS(112, 224, 56, 57, 58, 59, 60, 61, 62)
TL_WGMMA_HALF_SUMS(116, 232, 58, 59, 60, 61, 62, 63, 64)
TL_WGMMA_HALF_SUMS(120, 240, 60, 61, 62, 63, 64, 65, 66)
TL_WGMMA_HALF_SUMS(124, 248, 62, 63, 64, 65, 66, 67, 68)
TL_WGMMA_HALF_SUMS(128, 256, 64, 65, 66, 67, 68, 69, 70)
#undef TL_WGMMA_HALF_SUMS
#undef TL_SUM
#define TL_SUM(r) "+f"(r)
#endif

}  // namespace cuda
}  // namespace tl
