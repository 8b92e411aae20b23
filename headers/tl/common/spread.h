// The elements of a row that a thread holds in tensor core registers: two consecutive elements of each eight.
#pragma once
#include "index.h"
#include "nibbles.h"

namespace tl {

// 4 n consecutive indices from `first` on, of which each thread has n: 8 e + 2 t and 8 e + 2 t + 1 for e = 0, 1, ...,
// where t is the index of its lane in a group of four. [PTX ISA, "Matrix Fragments for mma.m16n8k16"]
template <int n, class I = int> struct SpreadRamp {
  I first;
  static TL_DEVICE int place(int i) { return i / 2 * 8 + lane() % 4 * 2 + i % 2; }
};
// The same as the last index of a loop over the elements of Layout, the first of which is in register `reg`. Registers
// hold two consecutive elements of one row, then two of another row.
template <class Layout_, int dim_, int n> struct SpreadIndex {
  using Layout = Layout_;
  static constexpr int dim = dim_;
  int reg;
  TL_DEVICE SpreadRamp<n> ramp() const { return {Layout::template coordinate<dim>(reg) - SpreadRamp<n>::place(0)}; }
};
template <int n, class I> struct PacketSize<SpreadRamp<n, I>> {
  static constexpr int value = n;
};
template <class Layout, int dim, int n> struct PacketSize<SpreadIndex<Layout, dim, n>> {
  static constexpr int value = n;
};
template <int n, class I> TL_DEVICE Vec<I, n> value(const SpreadRamp<n, I>& ramp) {
  Vec<I, n> indices;
  TL_UNROLL
  for (int i = 0; i < n; ++i) indices.at[i] = static_cast<I>(as_unsigned(ramp.first) + unsigned(ramp.place(i)));
  return indices;
}
template <class Layout, int dim, int n> TL_DEVICE Vec<int, n> value(const SpreadIndex<Layout, dim, n>& j) {
  return value(j.ramp());
}
template <class I, class J, int n, class = IfInteger<I>>
TL_DEVICE SpreadRamp<n, SumOf<I, J>> operator+(I a, SpreadRamp<n, J> b) {
  return {a + b.first};
}
template <class I, class J, int n, class = IfInteger<I>>
TL_DEVICE SpreadRamp<n, SumOf<J, I>> operator+(SpreadRamp<n, J> a, I b) {
  return {a.first + b};
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE auto operator+(I a, const SpreadIndex<Layout, dim, n>& b) {
  return a + b.ramp();
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE auto operator+(const SpreadIndex<Layout, dim, n>& a, I b) {
  return a.ramp() + b;
}

template <int n, class I> TL_DEVICE SpreadRamp<n, unsigned> modulo_2_32(const SpreadRamp<n, I>& i) {
  return {static_cast<unsigned>(i.first)};
}
template <class Layout, int dim, int n> TL_DEVICE auto modulo_2_32(const SpreadIndex<Layout, dim, n>& i) {
  return modulo_2_32(i.ramp());
}
template <int n> TL_DEVICE SpreadRamp<n> as_ints(SpreadRamp<n, unsigned> i) { return {static_cast<int>(i.first)}; }

// The bytes that the pairs of a thread share: byte t of each four from `first` on.
template <int n> struct SpreadBytes {
  int first;
};
// i / c if the 4 n indices have one quotient, or i / 2.
template <int c, int n> TL_DEVICE auto floordiv(const SpreadRamp<n>& i) {
  static_assert(c % (4 * n) == 0 || c == 2, "quotients are constant within a vector, or change per pair");
  if constexpr (c == 2)
    return SpreadBytes<n>{int(unsigned(i.first) / 2)};
  else
    return int(unsigned(i.first) / c);
}
template <int c, class Layout, int dim, int n> TL_DEVICE auto floordiv(const SpreadIndex<Layout, dim, n>& i) {
  return floordiv<c>(i.ramp());
}

// The 4-byte words that contain these bytes.
template <int n> struct SpreadWords {
  Vec<uint32_t, n / 2> words;
};
template <int n> TL_DEVICE SpreadWords<n> spread_words(const Vec<uint8_t, 2 * n>& bytes) {
  return {bit_cast<Vec<uint32_t, n / 2>>(bytes)};
}

// n 4-bit numbers, two from one byte of each of n / 2 words, the lower half first. SpreadNibblesLess subtracts `less`.
template <int n> struct SpreadNibbles {
  Vec<uint32_t, n / 2> words;
  TL_DEVICE uint32_t byte_twice(int i) const { return tl::byte_twice(words.at[i], lane() % 4); }
  TL_DEVICE uint32_t byte(int i) const { return byte_twice(i) & 0xff; }
  // As Nibbles::four.
  TL_DEVICE uint32_t four(int i) const {
    return bytes_at(words.at[2 * i], words.at[2 * i + 1], 0x40 + 0x11 * (lane() % 4));
  }
};
template <int n> struct SpreadNibblesLess {
  SpreadNibbles<n> nibbles;
  int less;
};
template <int n> struct PacketSize<SpreadNibbles<n>> {
  static constexpr int value = n;
};
template <int n> struct PacketSize<SpreadNibblesLess<n>> : PacketSize<SpreadNibbles<n>> {};
template <int n> TL_DEVICE SpreadNibbles<n> unpack_uint4(const SpreadWords<n>& spread) { return {spread.words}; }
template <int n> TL_DEVICE Vec<int, n> value(const SpreadNibbles<n>& x) {
  Vec<int, n> values;
  TL_UNROLL
  for (int i = 0; i < n; ++i) values.at[i] = static_cast<int>(x.byte(i / 2) >> 4 * (i % 2) & 15);
  return values;
}
template <int n> TL_DEVICE Vec<int, n> value(const SpreadNibblesLess<n>& x) { return value(x.nibbles) - x.less; }
template <int n> TL_DEVICE SpreadNibblesLess<n> operator-(const SpreadNibbles<n>& x, int less) { return {x, less}; }
template <int n> TL_DEVICE PlacedNibbles<SpreadNibbles<n>> operator&(const SpreadNibbles<n>& x, int mask) {
  return {x, mask & 15, 0};
}
template <class To, int n> TL_DEVICE auto cast(const SpreadNibbles<n>& x) {
  if constexpr (is_float<To>)
    return convert<To>(value(x));
  else
    return x;
}

// Converts to halves: the second number of a byte is in higher bits, 16 times as large.
template <class To, int n> TL_DEVICE auto cast_exact(const SpreadNibblesLess<n>& x) {
  if constexpr (std::is_same<To, half>::value) {
    constexpr uint32_t one_and_sixteenth = 0x2c003c00;
    const BelowNibbles below = below_nibbles(x.less);
    const uint32_t each = (below.once & 0xffff) | (below.sixteenth & 0xffff0000);
    Vec<uint32_t, n / 2> pairs;
    TL_UNROLL
    for (int i = 0; i < n / 2; ++i)
      pairs.at[i] = fma2(and_or(x.nibbles.byte_twice(i), 0x00f0000f, above_nibbles), one_and_sixteenth, each, half());
    return bit_cast<Vec<half, n>>(pairs);
  } else {
    return cast_exact<To>(value(x));
  }
}
template <class To, int n> TL_DEVICE auto cast_exact(const SpreadNibbles<n>& x) { return cast_exact<To>(x - 0); }

// n elements of a fragment; SpreadIndex selects the first.
template <class T, int n> struct InSpreadRegisters {
  using type = T;
  static constexpr int size = n;
  T* p;
  TL_DEVICE Vec<T, n> load() const {
    Vec<T, n> v;
    TL_UNROLL
    for (int i = 0; i < n; ++i) v.at[i] = p[i / 2 * 4 + i % 2];
    return v;
  }
  TL_DEVICE void store(const Vec<T, n>& v) const {
    TL_UNROLL
    for (int i = 0; i < n; ++i) p[i / 2 * 4 + i % 2] = v.at[i];
  }
};
template <class I> constexpr bool is_spread = false;
template <class Layout, int dim, int n> constexpr bool is_spread<SpreadIndex<Layout, dim, n>> = true;

}  // namespace tl
