// Definitions that all other headers use: function markers, type traits, bit casts and conversions.
#pragma once
#include "../standard.h"
#include "../primitives.h"
#include "float8.h"
#include "int4.h"
#include "tfloat32.h"

// The primitives of a target may define these; the defaults have no effect.
#ifndef TL_BOTH
#define TL_BOTH TL_DEVICE
#endif
#ifndef TL_UNROLL
#define TL_UNROLL
#define TL_UNROLL_LITTLE
#define TL_NO_UNROLL
#endif
#ifndef TL_INLINED_LAMBDA
#define TL_INLINED_LAMBDA
#endif
#ifndef TL_CHECK_INDEX
#define TL_CHECK_INDEX(index, extent)  // 0 <= index < extent
#endif
#ifndef TL_OPERAND_READS
#define TL_OPERAND_READS(T) ((void)0)  // this scope reads shared memory for the operands of an MMA of T
#endif
#ifndef TL_MARK_COMPUTED
#define TL_MARK_COMPUTED(sum) ((void)0)  // by an MMA, maybe from unwritten operands
#endif
#ifndef TL_CHECK_ACCUMULATOR
#define TL_CHECK_ACCUMULATOR(sum) ((void)0)  // reports an unwritten accumulator
#endif

namespace tl {

// half and bfloat16. Operations without a native instruction are computed in float and rounded once.
template <class T> constexpr bool is_small_float = std::is_same<T, half>::value || std::is_same<T, bfloat16>::value;
// The types whose arithmetic is computed in float: half, bfloat16, and the types that are only stored or multiplied by
// tensor cores.
template <class T>
constexpr bool is_widened = is_small_float<T> || is_float8<T> || std::is_same<T, float8_e8m0>::value ||
                            std::is_same<T, float4_e2m1>::value || std::is_same<T, tfloat32>::value;
template <class T> constexpr bool is_float = std::is_floating_point<T>::value || is_widened<T>;

// Reinterprets the bits of `from` as another type of the same size.
template <class To, class From> TL_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  __builtin_memcpy(static_cast<void*>(&to), &from, sizeof(To));
  return to;
}

// The integers that instructions convert floating-point numbers to: a narrower type has the lower bits of one.
template <class To>
using Truncated =
    std::conditional_t<sizeof(To) == 8, To, std::conditional_t<std::is_signed<To>::value, int32_t, uint32_t>>;

// Converts a number to another type, rounded to nearest even if it is not representable; to an integer, truncated.
template <class To, class From> TL_DEVICE To convert(From from) {
  if constexpr (std::is_same<To, From>::value)
    return from;
  else if constexpr (is_widened<To>)
    return static_cast<To>(static_cast<float>(from));
  else if constexpr (is_widened<From>)
    return convert<To>(static_cast<float>(from));
  else if constexpr (std::is_integral<To>::value && !std::is_same<To, bool>::value && is_float<From>)
    return static_cast<To>(truncate<Truncated<To>>(from));
  else
    return static_cast<To>(from);
}

// Updates of elements of the types without operators of their own: computed in float, and rounded once.
template <class T> using IfOnlyStored = std::enable_if_t<is_widened<T> && !is_small_float<T>>;
template <class T, class = IfOnlyStored<T>> TL_DEVICE T& operator+=(T& a, T b) { return a = T(float(a) + float(b)); }
template <class T, class = IfOnlyStored<T>> TL_DEVICE T& operator-=(T& a, T b) { return a = T(float(a) - float(b)); }
template <class T, class = IfOnlyStored<T>> TL_DEVICE T& operator*=(T& a, T b) { return a = T(float(a) * float(b)); }
template <class T, class = IfOnlyStored<T>> TL_DEVICE T& operator/=(T& a, T b) { return a = T(float(a) / float(b)); }

// first_set: the 1-based position of the lowest set bit of an integer, or 0 if no bit is set. popcount: the number of
// set bits.
template <class T> using BitsAsWord = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T> TL_DEVICE int first_set(T bits) { return first_set(static_cast<BitsAsWord<T>>(bits)); }
template <class T> TL_DEVICE T popcount(T bits) {
  return static_cast<T>(popcount(static_cast<BitsAsWord<T>>(static_cast<std::make_unsigned_t<T>>(bits))));
}

// Packs two 16-bit values into a word, `low` in bits 0..15.
template <class T> TL_DEVICE uint32_t pack_bits(T low, T high) {
  return bit_cast<uint16_t>(low) | static_cast<uint32_t>(bit_cast<uint16_t>(high)) << 16;
}

// The largest power of two that divides n > 0.
TL_BOTH constexpr int power_of_two_in(int n) { return n & -n; }
TL_BOTH constexpr int smaller(int a, int b) { return a < b ? a : b; }

// Arithmetic of int that may overflow: the result wraps modulo 2^32. A coordinate plus an offset in a tile is negative
// if it wraps, and so out of bounds of every tensor; others that wrap may be in bounds.
TL_BOTH constexpr int wrapping_add(int a, int b) { return static_cast<int>(unsigned(a) + unsigned(b)); }
TL_BOTH constexpr int wrapping_subtract(int a, int b) { return static_cast<int>(unsigned(a) - unsigned(b)); }
TL_BOTH constexpr int wrapping_multiply(int a, int b) { return static_cast<int>(unsigned(a) * unsigned(b)); }
// The sum, or the int that is nearest to it.
TL_BOTH constexpr int saturating_add(int a, int b) {
  constexpr int most = 2147483647, least = -most - 1;
  return b > 0 && a > most - b ? most : b < 0 && a < least - b ? least : a + b;
}

}  // namespace tl
