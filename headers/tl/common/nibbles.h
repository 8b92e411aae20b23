// 4-bit numbers, two per byte: the value of packed(i, tl::floordiv<2>(j)) >> 4 * (j % 2) & 15 for a vector index j.
#pragma once
#include "math.h"

namespace tl {

// n numbers in n / 2 bytes, the lower half of each byte first. NibblesLess subtracts `less` from each.
template <int n> struct Nibbles {
  Vec<uint8_t, n / 2> bytes;
  TL_DEVICE uint32_t byte(int i) const { return bytes.at[i]; }
  // Numbers 4 i to 4 i + 3 in the lower 16 bits; the upper bits are unspecified.
  TL_DEVICE uint32_t four(int i) const { return byte(2 * i) | byte(2 * i + 1) << 8; }
};
template <int n> struct NibblesLess {
  Nibbles<n> nibbles;
  int less;
};
template <int n> struct PacketSize<Nibbles<n>> {
  static constexpr int value = n;
};
template <int n> struct PacketSize<NibblesLess<n>> {
  static constexpr int value = n;
};

// `repeated` contains each byte twice, as a vector index divided by 2 loads them.
template <int n> TL_DEVICE Nibbles<n> unpack_uint4(const Vec<uint8_t, n>& repeated) {
  static_assert(n % 2 == 0, "a vector of 4-bit elements is a whole number of bytes");
  Nibbles<n> found;
  TL_UNROLL
  for (int i = 0; i < n / 2; ++i) found.bytes.at[i] = repeated.at[2 * i];
  return found;
}

template <int n> TL_DEVICE Vec<int, n> value(const Nibbles<n>& x) {
  Vec<int, n> values;
  TL_UNROLL
  for (int i = 0; i < n; ++i) values.at[i] = x.bytes.at[i / 2] >> 4 * (i % 2) & 15;
  return values;
}
template <int n> TL_DEVICE Vec<int, n> value(const NibblesLess<n>& x) { return value(x.nibbles) - x.less; }
template <int n> TL_DEVICE NibblesLess<n> operator-(const Nibbles<n>& x, int less) { return {x, less}; }
// Every integer type represents the numbers, so that these casts do nothing.
template <class To, int n> TL_DEVICE auto cast(const Nibbles<n>& x) {
  if constexpr (is_float<To>)
    return convert<To>(value(x));
  else
    return x;
}

// Addends that convert numbers x in the low mantissa bits of the halves 1536 + x and 1536 + 16 x. 1 times the former
// plus `once`, and 1/16 of the latter plus `sixteenth`, equal x - y, exactly for -512 <= y < 512.
struct BelowNibbles {
  uint32_t once, sixteenth;  // -1536 - y and -96 - y, each in both halves
};
constexpr uint32_t above_nibbles = 0x66006600;  // 1536 in both halves
TL_DEVICE BelowNibbles below_nibbles(int y) {
  const uint32_t once = 0xe600e600 + static_cast<uint32_t>(y) * 0x00010001;
  return {once, add2(once, 0x65a065a0, half())};
}

// Converts 8 numbers to halves; numbers i and i + 4 share a word.
TL_DEVICE Vec<uint32_t, 4> nibbles_as_pairs(uint32_t word, int less) {
  const BelowNibbles below = below_nibbles(less);
  Vec<uint32_t, 4> pairs;
  TL_UNROLL
  for (int i = 0; i < 4; i += 2) {
    const uint32_t bits = word >> 4 * i;
    pairs.at[i] = add2(and_or(bits, 0x000f000f, above_nibbles), below.once, half());
    pairs.at[i + 1] = fma2(and_or(bits, 0x00f000f0, above_nibbles), 0x2c002c00, below.sixteenth, half());
  }
  return pairs;
}
// The same, in order.
TL_DEVICE Vec<uint32_t, 4> nibbles_as_halves(uint32_t word, int less) {
  const Vec<uint32_t, 4> pairs = nibbles_as_pairs(word, less);
  return {{lower_halves(pairs.at[0], pairs.at[1]), lower_halves(pairs.at[2], pairs.at[3]),
           upper_halves(pairs.at[0], pairs.at[1]), upper_halves(pairs.at[2], pairs.at[3])}};
}
template <class To, int n> TL_DEVICE auto cast_exact(const NibblesLess<n>& x) {
  if constexpr (std::is_same<To, half>::value && n % 8 == 0) {
    const auto words = bit_cast<Vec<uint32_t, n / 8>>(x.nibbles.bytes);
    Vec<Vec<uint32_t, 4>, n / 8> halves;
    TL_UNROLL
    for (int i = 0; i < n / 8; ++i) halves.at[i] = nibbles_as_halves(words.at[i], x.less);
    return bit_cast<Vec<half, n>>(halves);
  } else {
    return cast_exact<To>(value(x));
  }
}
template <class To, int n> TL_DEVICE auto cast_exact(const Nibbles<n>& x) { return cast_exact<To>(x - 0); }

// ---- interleaved order --------------------------------------------------------------------------------------------
// The order of each eight numbers: 0, 4, 1, 5, 2, 6, 3, 7.
template <int n> struct NibblesApart {
  Nibbles<n> nibbles;
};
template <int n> struct NibblesApartLess {
  Nibbles<n> nibbles;
  int less;
};
template <int n> struct PacketSize<NibblesApart<n>> : PacketSize<Nibbles<n>> {};
template <int n> struct PacketSize<NibblesApartLess<n>> : PacketSize<Nibbles<n>> {};
template <class T, int n> TL_DEVICE Vec<T, n> put_apart(const Vec<T, n>& x) {
  static_assert(n % 8 == 0, "whole words of 4-bit elements");
  if constexpr (sizeof(T) == 2) {  // as words, so that the compiler recognises that all rows use the same ones
    const auto words = bit_cast<Vec<uint32_t, n / 2>>(x);
    Vec<uint32_t, n / 2> result;
    TL_UNROLL
    for (int i = 0; i < n / 2; i += 4) {
      TL_UNROLL
      for (int j = 0; j < 2; ++j) {
        result.at[i + 2 * j] = lower_halves(words.at[i + j], words.at[i + j + 2]);
        result.at[i + 2 * j + 1] = upper_halves(words.at[i + j], words.at[i + j + 2]);
      }
    }
    return bit_cast<Vec<T, n>>(result);
  } else {
    Vec<T, n> result;
    TL_UNROLL
    for (int i = 0; i < n; ++i) result.at[i] = x.at[i / 8 * 8 + i % 8 / 2 + i % 2 * 4];
    return result;
  }
}
template <class Bytes> TL_DEVICE auto unpack_uint4_interleaved(const Bytes& repeated) {
  const auto in_order = unpack_uint4(value(repeated));
  return NibblesApart<packet_size<decltype(in_order)>>{in_order};
}
template <class X> TL_DEVICE auto interleaved(const X& x) { return put_apart(value(x)); }
template <int n> TL_DEVICE Vec<int, n> value(const NibblesApart<n>& x) { return put_apart(value(x.nibbles)); }
template <int n> TL_DEVICE Vec<int, n> value(const NibblesApartLess<n>& x) {
  return put_apart(value(x.nibbles)) - x.less;
}
template <int n> TL_DEVICE NibblesApartLess<n> operator-(const NibblesApart<n>& x, int less) {
  return {x.nibbles, less};
}
template <class To, int n> TL_DEVICE auto cast(const NibblesApart<n>& x) {
  if constexpr (is_float<To>)
    return convert<To>(value(x));
  else
    return x;
}
template <class To, int n> TL_DEVICE auto cast_exact(const NibblesApartLess<n>& x) {
  if constexpr (std::is_same<To, half>::value) {
    const auto words = bit_cast<Vec<uint32_t, n / 8>>(x.nibbles.bytes);
    Vec<Vec<uint32_t, 4>, n / 8> pairs;
    TL_UNROLL
    for (int i = 0; i < n / 8; ++i) pairs.at[i] = nibbles_as_pairs(words.at[i], x.less);
    return bit_cast<Vec<half, n>>(pairs);
  } else {
    return cast_exact<To>(value(x));
  }
}
template <class To, int n> TL_DEVICE auto cast_exact(const NibblesApart<n>& x) { return cast_exact<To>(x - 0); }

// ---- bit fields in 16-bit words -----------------------------------------------------------------------------------
// (x & mask) << shift of each number. Numbers::byte(i) is the i-th byte, with two numbers, in a word.
template <class Numbers> struct PlacedNibbles {
  Numbers numbers;
  int mask, shift;
};
// Two bit fields of the same numbers.
template <class Numbers> struct NibblesAtTwo {
  PlacedNibbles<Numbers> a, b;
};
template <class Numbers> struct PacketSize<PlacedNibbles<Numbers>> : PacketSize<Numbers> {};
template <class Numbers> struct PacketSize<NibblesAtTwo<Numbers>> : PacketSize<Numbers> {};
template <class Numbers> TL_DEVICE auto value(const PlacedNibbles<Numbers>& x) {
  return (value(x.numbers) & x.mask) << x.shift;
}
template <class Numbers> TL_DEVICE auto value(const NibblesAtTwo<Numbers>& x) { return value(x.a) | value(x.b); }

template <int n> TL_DEVICE PlacedNibbles<Nibbles<n>> operator&(const Nibbles<n>& x, int mask) {
  return {x, mask & 15, 0};
}
template <class Numbers> TL_DEVICE PlacedNibbles<Numbers> operator<<(const PlacedNibbles<Numbers>& x, int by) {
  return {x.numbers, x.mask, x.shift + by};
}
template <class Numbers>
TL_DEVICE NibblesAtTwo<Numbers> operator|(const PlacedNibbles<Numbers>& a, const PlacedNibbles<Numbers>& b) {
  return {a, b};
}

// The bit fields of the two numbers of a byte in the two halves of a word, or-ed with `others`. The byte times 2^shift
// + 2^(shift + 12) has the first number's bits at `shift` and the second's 16 bits higher, without overlap.
template <class Numbers> TL_DEVICE uint32_t placed_bits(const PlacedNibbles<Numbers>& x, int byte, uint32_t others) {
  const uint32_t mask = static_cast<uint32_t>(x.mask << x.shift) & 0xffff;
  return and_or(x.numbers.byte(byte) * (0x1001u << x.shift), mask | mask << 16, others);
}
// These 16-bit words; and the same bits as halves, unscaled or multiplied by a factor.
template <class Numbers> struct NibbleWords {
  NibblesAtTwo<Numbers> bits;
};
template <class Numbers, bool scaled> struct NibbleHalves {
  NibblesAtTwo<Numbers> bits;
  float factor;
};
template <class Numbers> struct PacketSize<NibbleWords<Numbers>> : PacketSize<Numbers> {};
template <class Numbers, bool scaled> struct PacketSize<NibbleHalves<Numbers, scaled>> : PacketSize<Numbers> {};

// A table of the upper bytes of 16 entries: those of 0 to 7, and half of those of 8 to 15. For a number that belongs to
// the other half of the table bytes_at returns the replicated sign of one of its bytes, which is 0.
struct UpperBytes {
  uint32_t lower[2] = {}, upper[2] = {};
  TL_DEVICE uint32_t of_four(uint32_t numbers) const {
    return bytes_at(upper[0], upper[1], numbers ^ 0x8888) * 2 + bytes_at(lower[0], lower[1], numbers);
  }
};
template <class Numbers> TL_DEVICE uint32_t entry(const NibbleWords<Numbers>& x, int number) {
  const PlacedNibbles<Numbers>&a = x.bits.a, &b = x.bits.b;
  return static_cast<uint32_t>((number & a.mask) << a.shift | (number & b.mask) << b.shift) & 0xffff;
}
// The half of `number` times the factor, if it needs no rounding and is 0 or at least 2^-14. Otherwise 1,
// whose bit in the lower byte excludes the table. Computed with integers and floats, because the compiler folds these
// if they are constant.
template <class Numbers, bool scaled> TL_DEVICE uint32_t entry(const NibbleHalves<Numbers, scaled>& x, int number) {
  const uint32_t half_bits = entry(NibbleWords<Numbers>{x.bits}, number), exponent = half_bits >> 10 & 31;
  const int digits = int(half_bits & 0x3ff) + (exponent > 0 ? 0x400 : 0);
  const float power = bit_cast<float>((exponent > 0 ? exponent + 102 : 103) << 23);  // of the last mantissa bit
  const uint32_t bits = bit_cast<uint32_t>(float(digits) * power * x.factor);
  const uint32_t sign = half_bits & 0x8000, moved = (bits - 0x38000000) >> 13;
  if (bits == 0) return sign;
  return bits >= 0x38800000 && bits < 0x47800000 && bits % 0x2000 == 0 && exponent < 31 ? sign | moved : 1;
}
// Whether the upper bytes represent all 16 entries, those of 8 to 15 can be halved, and the others have no sign. The
// entries are constants, so that this test and the tables are evaluated at compile time.
template <class Entries> TL_DEVICE bool are_upper_bytes(const Entries& x) {
  uint32_t lower = 0, upper = 0;
  TL_UNROLL
  for (int i = 0; i < 8; ++i) lower |= entry(x, i), upper |= entry(x, i + 8);
  return (lower & 0x80ff) == 0 && (upper & 0x1ff) == 0;
}
template <int n, class Entries> TL_DEVICE Vec<uint32_t, n / 2> pairs_from_table(const Entries& x) {
  UpperBytes table;
  TL_UNROLL
  for (int i = 0; i < 8; ++i) {
    table.lower[i / 4] |= entry(x, i) >> 8 << 8 * (i % 4);
    table.upper[i / 4] |= entry(x, i + 8) >> 9 << 8 * (i % 4);
  }
  Vec<uint32_t, n / 2> pairs;
  TL_UNROLL
  for (int i = 0; i < n / 2; i += 2) {
    const uint32_t bytes = table.of_four(x.bits.a.numbers.four(i / 2));
    pairs.at[i] = bytes_at(bytes, 0, 0x1404), pairs.at[i + 1] = bytes_at(bytes, 0, 0x3424);
  }
  return pairs;
}
template <class Numbers> TL_DEVICE auto value(const NibbleWords<Numbers>& x) {
  constexpr int n = packet_size<Numbers>;
  if constexpr (has_byte_tables && n % 4 == 0) {
    if (are_upper_bytes(x)) return bit_cast<Vec<uint16_t, n>>(pairs_from_table<n>(x));
  }
  Vec<uint32_t, n / 2> pairs;
  TL_UNROLL
  for (int i = 0; i < n / 2; ++i) pairs.at[i] = placed_bits(x.bits.a, i, placed_bits(x.bits.b, i, 0));
  return bit_cast<Vec<uint16_t, n>>(pairs);
}
template <class Numbers, bool scaled> TL_DEVICE auto value(const NibbleHalves<Numbers, scaled>& x) {
  constexpr int n = packet_size<Numbers>;
  if constexpr (has_byte_tables && n % 4 == 0) {
    if (are_upper_bytes(x)) return bit_cast<Vec<half, n>>(pairs_from_table<n>(x));
  }
  return bit_cast<Vec<half, n>>(value(NibbleWords<Numbers>{x.bits})) * half(x.factor);
}

template <class To, class Numbers> TL_DEVICE auto cast(const NibblesAtTwo<Numbers>& x) {
  if constexpr (std::is_same<To, uint16_t>::value)
    return NibbleWords<Numbers>{x};
  else
    return convert<To>(value(x));
}
template <class To, class Numbers> TL_DEVICE auto cast(const NibbleWords<Numbers>& x) {
  if constexpr (std::is_same<To, uint16_t>::value)
    return x;
  else
    return convert<To>(value(x));
}
template <class To, class Numbers> TL_DEVICE auto reinterpret(const NibbleWords<Numbers>& x) {
  if constexpr (std::is_same<To, half>::value)
    return NibbleHalves<Numbers, false>{x.bits, 1};
  else
    return apply(Reinterpret<To>{}, value(x));
}
template <class Numbers> TL_DEVICE auto operator*(const NibbleHalves<Numbers, false>& x, half factor) {
  return NibbleHalves<Numbers, true>{x.bits, float(factor)};
}

}  // namespace tl
