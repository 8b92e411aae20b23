// CUDA's intrinsics, for inline user code and T.call_extern: integers, SIMD in a word, bit casts, and conversions and
// arithmetic with an explicit rounding mode. [CUDA Math API, Integer Intrinsics, SIMD Intrinsics, Type Casting
// Intrinsics, Single Precision Intrinsics, Half Precision Conversion, Bfloat16 Precision Conversion]
#pragma once
#include <climits>
#include <cmath>
#include "kernel.h"
#include "numeric.h"
#include "rounding.h"

namespace tl {
namespace host {
// Lane-wise operation on four bytes or two 16-bit halves of a word, without carries between lanes.
template <int Bits, class Combine> inline unsigned by_lanes(unsigned a, unsigned b, Combine combine) {
  constexpr unsigned mask = (1u << Bits) - 1;
  unsigned result = 0;
  for (int at = 0; at < 32; at += Bits) result |= (combine(a >> at & mask, b >> at & mask) & mask) << at;
  return result;
}
inline unsigned add(unsigned a, unsigned b) { return a + b; }
inline unsigned subtract(unsigned a, unsigned b) { return a - b; }

enum class Rounding { rn, rz, ru, rd };

// The direction from `nearest`, the result of rounding `exact` to nearest, to its result in another mode: -1, 0 or 1.
inline int correction(double exact, double nearest, Rounding mode) {
  const bool down = mode == Rounding::rd || (mode == Rounding::rz && exact > 0);
  const bool up = mode == Rounding::ru || (mode == Rounding::rz && exact < 0);
  return down && nearest > exact ? -1 : up && nearest < exact ? 1 : 0;
}

// Float to half or bfloat16. Neighbours of a number differ by one in its magnitude's bits, infinity's included.
template <class T> inline T rounded_to(float value, Rounding mode) {
  const T nearest(value);
  const int direction = correction(value, float(nearest), mode);
  if (direction == 0) return nearest;
  const int magnitude = nearest.bits & 0x7fff, sign = nearest.bits >> 15 ? -1 : 1;
  const int moved = sign * magnitude + direction;
  const bool is_negative = moved < 0 || (moved == 0 && sign < 0);
  return bit_cast<T>(uint16_t((moved < 0 ? -moved : moved) | (is_negative ? 0x8000 : 0)));
}

// A double, or an integer that one holds exactly, to float.
inline float rounded_to_float(double exact, Rounding mode) {
  const float nearest = static_cast<float>(exact);
  const int direction = correction(exact, nearest, mode);
  return direction == 0 ? nearest : std::nextafter(nearest, direction < 0 ? -INFINITY : INFINITY);
}

// To an integer: out of range saturates, NaN becomes 0. [PTX ISA, cvt]
template <class To> inline To rounded_to_integer(double value, Rounding mode) {
  const double whole = mode == Rounding::rn   ? std::nearbyint(value)
                       : mode == Rounding::rz ? std::trunc(value)
                       : mode == Rounding::ru ? std::ceil(value)
                                              : std::floor(value);
  constexpr double low = To(-1) < To(0) ? double(INT_MIN) : 0.0;
  constexpr double high = To(-1) < To(0) ? double(INT_MAX) : double(UINT_MAX);
  if (whole != whole) return To(0);
  return static_cast<To>(whole < low ? low : whole > high ? high : whole);
}
}  // namespace host
}  // namespace tl

inline unsigned __vadd4(unsigned a, unsigned b) { return tl::host::by_lanes<8>(a, b, tl::host::add); }
inline unsigned __vsub4(unsigned a, unsigned b) { return tl::host::by_lanes<8>(a, b, tl::host::subtract); }
inline unsigned __vadd2(unsigned a, unsigned b) { return tl::host::by_lanes<16>(a, b, tl::host::add); }
inline unsigned __vsub2(unsigned a, unsigned b) { return tl::host::by_lanes<16>(a, b, tl::host::subtract); }

// Byte permutation: each 4-bit selector selects one of the eight bytes of (y, x); bit 3 replicates its sign bit.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const uint64_t bytes = uint64_t(y) << 32 | x;
  unsigned result = 0;
  for (int at = 0; at < 4; ++at) {
    const unsigned which = selector >> 4 * at & 15;
    const unsigned byte = unsigned(bytes >> 8 * (which & 7)) & 0xff;
    result |= (which & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * at;
  }
  return result;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned x, unsigned y) { return unsigned(uint64_t(x) * y >> 32); }
inline int __mulhi(int x, int y) { return int(int64_t(x) * y >> 32); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned result = 0;
  for (int at = 0; at < 32; ++at) result |= (x >> at & 1) << (31 - at);
  return result;
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return unsigned((uint64_t(high) << 32 | low) >> (shift & 31));
}
template <class T> inline T __ldg(const T* p) { return *p; }
inline void __nanosleep(unsigned) {}  // threads are fibers: another one runs when this one waits

// Bit casts.
inline int __float_as_int(float x) { return tl::host::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return tl::host::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return tl::host::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return tl::host::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return tl::host::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return tl::host::bit_cast<double>(x); }
inline unsigned short __half_as_ushort(tl::half x) { return x.bits; }
inline tl::half __ushort_as_half(unsigned short x) { return tl::host::bit_cast<tl::half>(x); }
inline unsigned short __bfloat16_as_ushort(tl::bfloat16 x) { return x.bits; }
inline tl::bfloat16 __ushort_as_bfloat16(unsigned short x) { return tl::bfloat16::from_bits(x); }

// Conversions, and arithmetic in a rounding mode.
inline float __half2float(tl::half x) { return x; }
inline float __bfloat162float(tl::bfloat16 x) { return x; }
inline tl::half __float2half(float x) { return tl::half(x); }
inline tl::bfloat16 __float2bfloat16(float x) { return tl::bfloat16(x); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frsqrt_rn(float x) { return tl::rounded::rsqrt_rn(x); }

#define TL_IN_MODE(mode)                                                                                               \
  inline tl::half __float2half_##mode(float x) { return tl::host::rounded_to<tl::half>(x, tl::host::Rounding::mode); } \
  inline tl::bfloat16 __float2bfloat16_##mode(float x) {                                                               \
    return tl::host::rounded_to<tl::bfloat16>(x, tl::host::Rounding::mode);                                            \
  }                                                                                                                    \
  inline int __float2int_##mode(float x) { return tl::host::rounded_to_integer<int>(x, tl::host::Rounding::mode); }    \
  inline unsigned __float2uint_##mode(float x) {                                                                       \
    return tl::host::rounded_to_integer<unsigned>(x, tl::host::Rounding::mode);                                        \
  }                                                                                                                    \
  inline int __double2int_##mode(double x) { return tl::host::rounded_to_integer<int>(x, tl::host::Rounding::mode); }  \
  inline float __int2float_##mode(int x) { return tl::host::rounded_to_float(x, tl::host::Rounding::mode); }           \
  inline float __uint2float_##mode(unsigned x) { return tl::host::rounded_to_float(x, tl::host::Rounding::mode); }     \
  inline float __double2float_##mode(double x) { return tl::host::rounded_to_float(x, tl::host::Rounding::mode); }     \
  inline float __fadd_##mode(float x, float y) { return tl::rounded::add_##mode(x, y); }                               \
  inline float __fsub_##mode(float x, float y) { return tl::rounded::subtract_##mode(x, y); }                          \
  inline float __fmul_##mode(float x, float y) { return tl::rounded::multiply_##mode(x, y); }                          \
  inline float __fdiv_##mode(float x, float y) { return tl::rounded::divide_##mode(x, y); }                            \
  inline float __fmaf_##mode(float x, float y, float z) { return tl::rounded::fma_##mode(x, y, z); }                   \
  inline float __frcp_##mode(float x) { return tl::rounded::reciprocal_##mode(x); }                                    \
  inline float __fsqrt_##mode(float x) { return tl::rounded::sqrt_##mode(x); }
TL_IN_MODE(rn)
TL_IN_MODE(rz)
TL_IN_MODE(ru)
TL_IN_MODE(rd)
#undef TL_IN_MODE
