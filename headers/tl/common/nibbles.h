// Numbers of 4 bits, two in a byte: what packed(i, tl::quotient<2>(j)) >> 4 * (j % 2) & 15 is for a packet of j.
#pragma once
#include "math.h"

namespace tl {

// n of them from n / 2 bytes, the lower half of each first, less a number where that is asked for.
template <int n> struct Nibbles {
  Vec<uint8_t, n / 2> bytes;
  TL_DEVICE uint32_t byte(int i) const { return bytes.at[i]; }
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

// `repeated` has each byte twice, as an index of the packet's quotients gives them.
template <int n> TL_DEVICE Nibbles<n> nibbles(const Vec<uint8_t, n>& repeated) {
  static_assert(n % 2 == 0, "a packet has whole bytes");
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
// Integers of any type hold them as they are.
template <class To, int n> TL_DEVICE auto cast(const Nibbles<n>& x) {
  if constexpr (is_float<To>)
    return convert<To>(value(x));
  else
    return x;
}

// 8 of them as halves, in order. Bits that are or-ed under 1024 are added to it; a word shifted by a nibble more each
// time has nibbles i and i + 4 at the lower ends of its halves. 1024 + x less 1024 + y is exact.
TL_DEVICE Vec<uint32_t, 4> nibbles_as_halves(uint32_t word, int less) {
  uint32_t pairs[4];
  TL_UNROLL
  for (int i = 0; i < 4; ++i)
    pairs[i] = subtract2(and_or(word >> 4 * i, 0x000f000f, 0x64006400), 0x64006400 + (less | less << 16), half());
  return {{lower_halves(pairs[0], pairs[1]), lower_halves(pairs[2], pairs[3]), upper_halves(pairs[0], pairs[1]),
           upper_halves(pairs[2], pairs[3])}};
}
template <class To, int n> TL_DEVICE auto cast_small(const NibblesLess<n>& x) {
  if constexpr (std::is_same<To, half>::value && n % 8 == 0) {
    if (x.less >= 0 && x.less < 512) {  // a number: no branch is left
      const auto words = bit_cast<Vec<uint32_t, n / 8>>(x.nibbles.bytes);
      Vec<Vec<uint32_t, 4>, n / 8> halves;
      TL_UNROLL
      for (int i = 0; i < n / 8; ++i) halves.at[i] = nibbles_as_halves(words.at[i], x.less);
      return bit_cast<Vec<half, n>>(halves);
    }
  }
  return cast_small<To>(value(x));
}
template <class To, int n> TL_DEVICE auto cast_small(const Nibbles<n>& x) { return cast_small<To>(x - 0); }

// ---- bits of them at places of 16-bit words ----------------------------------------------------------------------
// (x & mask) << shift of each. Numbers has bytes of two numbers: byte(i) is the i-th, in a word.
template <class Numbers> struct PlacedNibbles {
  Numbers numbers;
  int mask, shift;
};
// The same numbers' bits at two places.
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

// The bits of a byte's two numbers in the two halves of a word, or-ed to others. A byte times 2^shift + 2^(shift + 12)
// has the first number's bits at `shift` and the second's 16 further; no bits meet.
template <class Numbers> TL_DEVICE uint32_t placed_bits(const PlacedNibbles<Numbers>& x, int byte, uint32_t others) {
  const uint32_t mask = static_cast<uint32_t>(x.mask << x.shift) & 0xffff;
  return and_or(x.numbers.byte(byte) * (0x1001u << x.shift), mask | mask << 16, others);
}
template <class To, class Numbers> TL_DEVICE auto cast(const NibblesAtTwo<Numbers>& x) {
  if constexpr (std::is_same<To, uint16_t>::value) {
    constexpr int n = packet_size<Numbers>;
    Vec<uint32_t, n / 2> pairs;
    TL_UNROLL
    for (int i = 0; i < n / 2; ++i) pairs.at[i] = placed_bits(x.a, i, placed_bits(x.b, i, 0));
    return bit_cast<Vec<uint16_t, n>>(pairs);
  } else {
    return convert<To>(value(x));
  }
}

}  // namespace tl
