// Indices of tl::parallel: an index holds a register number and computes the coordinate on demand.
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

// The same for the n consecutive elements from register `reg` on.
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

// A vector index plus or minus an integer is a vector index; any other arithmetic converts it to a Vec.
template <class I>
using IfInteger =
    std::enable_if_t<!std::is_floating_point<I>::value && packet_size<I> == 0 && std::is_convertible<I, int>::value>;
template <class A, class B> using SumOf = decltype(A() + B());
template <class I, class J, int n, class = IfInteger<I>> TL_DEVICE Ramp<n, SumOf<I, J>> operator+(I a, Ramp<n, J> b) {
  return {a + b.first};
}
template <class I, class J, int n, class = IfInteger<I>> TL_DEVICE Ramp<n, SumOf<J, I>> operator+(Ramp<n, J> a, I b) {
  return {a.first + b};
}
template <class I, class J, int n, class = IfInteger<I>> TL_DEVICE Ramp<n, SumOf<J, I>> operator-(Ramp<n, J> a, I b) {
  return {a.first - b};
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE auto operator+(I a, const PacketIndex<Layout, dim, n>& b) {
  return a + b.ramp();
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE auto operator+(const PacketIndex<Layout, dim, n>& a, I b) {
  return a.ramp() + b;
}
template <class I, class Layout, int dim, int n, class = IfInteger<I>>
TL_DEVICE auto operator-(const PacketIndex<Layout, dim, n>& a, I b) {
  return a.ramp() - b;
}

// wrapping_add and the others of vectors, and of vector indices, whose sum with an integer is a vector index.
template <class X> TL_DEVICE auto modulo_2_32(const X& x) {
  if constexpr (packet_size<X> == 0)
    return static_cast<unsigned>(static_cast<int>(x));
  else
    return convert<unsigned>(value(x));
}
template <int n, class I> TL_DEVICE Ramp<n, unsigned> modulo_2_32(const Ramp<n, I>& i) {
  return {static_cast<unsigned>(i.first)};
}
template <class Layout, int dim, int n> TL_DEVICE auto modulo_2_32(const PacketIndex<Layout, dim, n>& i) {
  return modulo_2_32(i.ramp());
}
template <int n> TL_DEVICE Vec<int, n> as_ints(const Vec<unsigned, n>& v) { return convert<int>(v); }
template <int n> TL_DEVICE Ramp<n> as_ints(Ramp<n, unsigned> i) { return {static_cast<int>(i.first)}; }
template <class A, class B, class = IfPacket<A, B>> TL_DEVICE auto wrapping_add(const A& a, const B& b) {
  return as_ints(modulo_2_32(a) + modulo_2_32(b));
}
template <class A, class B, class = IfPacket<A, B>> TL_DEVICE auto wrapping_subtract(const A& a, const B& b) {
  return as_ints(modulo_2_32(a) - modulo_2_32(b));
}
template <class A, class B, class = IfPacket<A, B>> TL_DEVICE auto wrapping_multiply(const A& a, const B& b) {
  return as_ints(modulo_2_32(a) * modulo_2_32(b));
}

// n indices: first, first + 1, ..., each repeated c times. For elements of memory that each hold several values.
template <int n, int c> struct Repeated {
  int first;
};
template <int n, int c> struct PacketSize<Repeated<n, c>> {
  static constexpr int value = n;
};
template <int n, int c> TL_DEVICE constexpr int first_of_vector(Repeated<n, c> i) { return i.first; }

// i / c for a vector of non-negative indices that starts at a multiple of its size: one number if the quotient is
// uniform, else each quotient repeated c times.
template <int c, int n, class I> TL_DEVICE auto floordiv(const Ramp<n, I>& i) {
  static_assert(c % n == 0 || n % c == 0, "quotients are constant within a vector, or each is repeated c times");
  if constexpr (c % n == 0)
    return static_cast<I>(as_unsigned(i.first) / c);
  else
    return Repeated<n, c>{int_index(as_unsigned(i.first) / c)};
}
template <int c, class Layout, int dim, int n> TL_DEVICE auto floordiv(const PacketIndex<Layout, dim, n>& i) {
  return floordiv<c>(i.ramp());
}

// i % c for the same indices, if the quotient is uniform: n consecutive indices.
template <int c, int n, class I> TL_DEVICE Ramp<n, I> floormod(const Ramp<n, I>& i) {
  static_assert(c % n == 0, "the remainders within a vector are consecutive");
  return {static_cast<I>(as_unsigned(i.first) % c)};
}
template <int c, class Layout, int dim, int n> TL_DEVICE Ramp<n> floormod(const PacketIndex<Layout, dim, n>& i) {
  return floormod<c>(i.ramp());
}

// Repeats each element c times.
template <int c, class T, int n> TL_DEVICE Vec<T, n * c> repeated(const Vec<T, n>& v) {
  Vec<T, n * c> result;
  TL_UNROLL
  for (int i = 0; i < n * c; ++i) result.at[i] = v.at[i / c];
  return result;
}
// The number of times that an index repeats each element.
template <class I> constexpr int repeats = 1;
template <int n, int c> constexpr int repeats<Repeated<n, c>> = c;

}  // namespace tl
