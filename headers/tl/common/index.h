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
template <class Layout, int dim, int n> TL_DEVICE int first_index(const PacketIndex<Layout, dim, n>& i) {
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

}  // namespace tl
