// What everything else is written with: function markers, small facts about types, bits of a value.
#pragma once
#include "../standard.h"
#include "../primitives.h"
#include "float8.h"
#include "int4.h"
#include "tfloat32.h"

// A machine's primitives may define these; elsewhere they mean nothing special.
#ifndef TL_BOTH
#define TL_BOTH TL_DEVICE
#endif
#ifndef TL_UNROLL
#define TL_UNROLL
#define TL_UNROLL_LITTLE
#define TL_NO_UNROLL
#endif
#ifndef TL_INLINED
#define TL_INLINED
#endif
#ifndef TL_CHECK_INDEX
#define TL_CHECK_INDEX(index, extent)  // 0 <= index < extent
#endif

namespace tl {

// half and bfloat16: arithmetic that is not their own is done in float and rounded once.
template <class T> constexpr bool is_small_float = std::is_same<T, half>::value || std::is_same<T, bfloat16>::value;
// Of these, and of what is only stored and multiplied by tensor cores, arithmetic is done in float.
template <class T>
constexpr bool is_widened =
    is_small_float<T> || is_float8<T> || std::is_same<T, float4_e2m1>::value || std::is_same<T, tfloat32>::value;
template <class T> constexpr bool is_float = std::is_floating_point<T>::value || is_widened<T>;

// The bits of `from` as another type of the same size.
template <class To, class From> TL_DEVICE To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To to;
  __builtin_memcpy(static_cast<void*>(&to), &from, sizeof(To));
  return to;
}

// A number as another type, rounded to nearest even where it does not fit exactly.
template <class To, class From> TL_DEVICE To convert(From from) {
  if constexpr (std::is_same<To, From>::value)
    return from;
  else if constexpr (is_widened<To> || is_widened<From>)
    return static_cast<To>(static_cast<float>(from));
  else
    return static_cast<To>(from);
}

// Of the bits of an integer of any kind: the number of the lowest one that is set, from 1 on, 0 where none is; and how
// many are set.
template <class T> using BitsAsWord = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <class T> TL_DEVICE int first_set(T bits) { return first_set(static_cast<BitsAsWord<T>>(bits)); }
template <class T> TL_DEVICE T popcount(T bits) {
  return static_cast<T>(popcount(static_cast<BitsAsWord<T>>(static_cast<std::make_unsigned_t<T>>(bits))));
}

// Two 16-bit values side by side, `low` in bits 0..15.
template <class T> TL_DEVICE uint32_t pack_bits(T low, T high) {
  return bit_cast<uint16_t>(low) | static_cast<uint32_t>(bit_cast<uint16_t>(high)) << 16;
}

// The greatest power of two that divides n > 0.
TL_BOTH constexpr int power_of_two_in(int n) { return n & -n; }
TL_BOTH constexpr int smaller(int a, int b) { return a < b ? a : b; }

}  // namespace tl
