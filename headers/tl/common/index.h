// Indices of tl::parallel: they carry the register, and become a coordinate only where one is asked for.
#pragma once
#include "packet.h"

namespace tl {

// Coordinate `dim` of the element in register `reg` of Layout.
template <class Layout_, int dim_> struct Index {
  using Layout = Layout_;
  static constexpr int dim = dim_;
  int reg;
  TL_DEVICE operator int() const { return Layout::template coordinate<dim>(reg); }
};

template <class Layout, int dim> TL_DEVICE int value(const Index<Layout, dim>& i) { return i; }

// The same for the n consecutive elements that start in register `reg`.
template <class Layout_, int dim_, int n> struct PacketIndex {
  using Layout = Layout_;
  static constexpr int dim = dim_;
  int reg;
  TL_DEVICE Ramp<n> ramp() const { return {Layout::template coordinate<dim>(reg)}; }
};
template <class Layout, int dim, int n> struct PacketSize<PacketIndex<Layout, dim, n>> {
  static constexpr int value = n;
};
template <class Layout, int dim, int n> TL_DEVICE Vec<int, n> value(const PacketIndex<Layout, dim, n>& i) {
  return value(i.ramp());
}
template <class Layout, int dim, int n> TL_DEVICE int first_of_vector(const PacketIndex<Layout, dim, n>& i) {
  return i.ramp().first;
}

// A packet moved by an integer is a packet again; any other arithmetic makes a Vec of it.
template <class I>
using IfInteger =
    std::enable_if_t<!std::is_floating_point<I>::value && packet_size<I> == 0 && std::is_convertible<I, int>::value>;
template <class I, int n, class = IfInteger<I>> TL_DEVICE Ramp<n> operator+(I a, const Ramp<n>& b) {
  return {int(a) + b.first};
}
template <class I, int n, class = IfInteger<I>> TL_DEVICE Ramp<n> operator+(const Ramp<n>& a, I b) {
  return {a.first + int(b)};
}
template <class I, int n, class = IfInteger<I>> TL_DEVICE Ramp<n> operator-(const Ramp<n>& a, I b) {
  return {a.first - int(b)};
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE Ramp<n> operator+(I a, const PacketIndex<Layout, dim, n>& b) {
  return {int(a) + b.ramp().first};
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE Ramp<n> operator+(const PacketIndex<Layout, dim, n>& a, I b) {
  return {a.ramp().first + int(b)};
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE Ramp<n> operator-(const PacketIndex<Layout, dim, n>& a, I b) {
  return {a.ramp().first - int(b)};
}

// Indices first, first + 1, ..., each of them c times in a row, n in all: where several values lie in one element.
template <int n, int c> struct Repeated {
  int first;
};
template <int n, int c> struct PacketSize<Repeated<n, c>> {
  static constexpr int value = n;
};
template <int n, int c> TL_DEVICE constexpr int first_of_vector(Repeated<n, c> i) { return i.first; }

// i / c for the indices of a packet that starts at a multiple of its size: one number where they all have the same,
// else each quotient c times. None of them is negative.
template <int c, int n> TL_DEVICE auto floordiv(const Ramp<n>& i) {
  static_assert(c % n == 0 || n % c == 0, "quotients do not change within a packet, or each comes c times");
  if constexpr (c % n == 0)
    return int(unsigned(i.first) / c);
  else
    return Repeated<n, c>{int(unsigned(i.first) / c)};
}
template <int c, class Layout, int dim, int n> TL_DEVICE auto floordiv(const PacketIndex<Layout, dim, n>& i) {
  return floordiv<c>(i.ramp());
}

// i % c for the same indices, where they all have one quotient: n consecutive ones again.
template <int c, int n> TL_DEVICE Ramp<n> floormod(const Ramp<n>& i) {
  static_assert(c % n == 0, "a packet's remainders follow one another");
  return {int(unsigned(i.first) % c)};
}
template <int c, class Layout, int dim, int n> TL_DEVICE Ramp<n> floormod(const PacketIndex<Layout, dim, n>& i) {
  return floormod<c>(i.ramp());
}

// Each element c times in a row.
template <int c, class T, int n> TL_DEVICE Vec<T, n * c> repeated(const Vec<T, n>& v) {
  Vec<T, n * c> result;
  TL_UNROLL
  for (int i = 0; i < n * c; ++i) result.at[i] = v.at[i / c];
  return result;
}
// How often each element that an index stands for is wanted.
template <class I> constexpr int repeats = 1;
template <int n, int c> constexpr int repeats<Repeated<n, c>> = c;

}  // namespace tl
