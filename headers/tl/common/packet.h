// Consecutive indices, and proxies for elements in memory: the results of A(i, j).
#pragma once
#include "packed.h"

namespace tl {

// An index as an int. One of 64 bits that no int holds becomes the least one, which is out of bounds of every tensor.
template <class I> TL_DEVICE constexpr int int_index(const I& i) {
  if constexpr (std::is_integral<I>::value && sizeof(I) == 8)
    return static_cast<I>(static_cast<int>(i)) == i ? static_cast<int>(i) : -2147483647 - 1;
  else
    return static_cast<int>(i);
}

// An integer as an unsigned one, of 32 or 64 bits: its sums wrap, and its division knows no sign.
template <class I> TL_DEVICE auto as_unsigned(I i) {
  if constexpr (sizeof(I) == 8)
    return static_cast<uint64_t>(i);
  else
    return static_cast<unsigned>(i);
}

// n consecutive indices from `first` on: the vector index of a loop after arithmetic such as `bx * 128 + i`. I is the
// type of the arithmetic.
template <int n, class I = int> struct Ramp {
  I first;
};
// The last index of A(i, tl::vec<n>(j)): n consecutive elements from j on; j is a multiple of n.
template <int n, class I> TL_DEVICE constexpr Ramp<n> vec(const I& first) { return {int_index(first)}; }
template <int n, class I> struct PacketSize<Ramp<n, I>> {
  static constexpr int value = n;
};
template <int n, class I> TL_DEVICE Vec<I, n> value(const Ramp<n, I>& ramp) {
  Vec<I, n> indices;
  TL_UNROLL
  for (int i = 0; i < n; ++i) indices.at[i] = static_cast<I>(as_unsigned(ramp.first) + unsigned(i));
  return indices;
}

// The first index of an argument of A(...).
TL_DEVICE constexpr int first_of_vector(int i) { return i; }
template <class I, class = std::enable_if_t<std::is_integral<I>::value && sizeof(I) == 8>>
TL_DEVICE constexpr int first_of_vector(I i) {
  return int_index(i);
}
template <int n, class I> TL_DEVICE constexpr int first_of_vector(Ramp<n, I> i) { return int_index(i.first); }

// Cache eviction priority: lines that caches evict first, or last. A hint; 16-byte loads from tensors apply it.
enum class Evict { as_usual, first, last };

// Loads 16 bytes, or returns zeros if they are not wanted.
template <Evict evict> TL_DEVICE uint4 load16_as(const void* p, bool wanted) {
  if constexpr (evict == Evict::first) return load16_evict_first(p, wanted);
  if constexpr (evict == Evict::last) return load16_evict_last(p, wanted);
  return wanted ? load16(p) : uint4{};
}

// One memory access of `width` bytes (a power of two up to 16); p is aligned to `width`.
template <int width, class V, Evict evict = Evict::as_usual, class T> TL_DEVICE V load_bits(T* p) {
  static_assert(sizeof(V) == width, "the access is as wide as what it loads");
  if constexpr (width == 16) return bit_cast<V>(load16_as<evict>(p, true));
  if constexpr (width == 8) return bit_cast<V>(load8(p));
  if constexpr (width == 4) return bit_cast<V>(load4(p));
  if constexpr (width == 2) return bit_cast<V>(load2(p));
}
template <int width, class V, class T> TL_DEVICE void store_bits(T* p, const V& v) {
  static_assert(sizeof(V) == width, "the access is as wide as what it stores");
  if constexpr (width == 16) store16(p, bit_cast<uint4>(v));
  if constexpr (width == 8) store8(p, bit_cast<uint2>(v));
  if constexpr (width == 4) store4(p, bit_cast<uint32_t>(v));
  if constexpr (width == 2) store2(p, bit_cast<uint16_t>(v));
}

// n elements, one memory access per `width` bytes. Single elements are accessed in their own type.
template <int n, int width, Evict evict = Evict::as_usual, class T>
TL_DEVICE Vec<std::remove_const_t<T>, n> load_elements(T* p) {
  using U = std::remove_const_t<T>;
  constexpr int each = width / static_cast<int>(sizeof(T));
  Vec<U, n> v;
  if constexpr (each <= 1) {
    TL_UNROLL
    for (int i = 0; i < n; ++i) v.at[i] = p[i];
  } else if constexpr (each == n) {
    v = load_bits<width, Vec<U, n>, evict>(p);
  } else {
    TL_UNROLL
    for (int i = 0; i < n; i += each) {
      const auto part = load_bits<width, Vec<U, each>, evict>(p + i);
      TL_UNROLL
      for (int e = 0; e < each; ++e) v.at[i + e] = part.at[e];
    }
  }
  return v;
}
template <int width, class T, int n> TL_DEVICE void store_elements(T* p, const Vec<T, n>& v) {
  constexpr int each = width / static_cast<int>(sizeof(T));
  if constexpr (each <= 1) {
    TL_UNROLL
    for (int i = 0; i < n; ++i) p[i] = v.at[i];
  } else if constexpr (each == n) {
    store_bits<width>(p, v);
  } else {
    TL_UNROLL
    for (int i = 0; i < n; i += each) {
      Vec<T, each> part;
      TL_UNROLL
      for (int e = 0; e < each; ++e) part.at[e] = v.at[i + e];
      store_bits<width>(p + i, part);
    }
  }
}
template <int n, int width, Evict evict = Evict::as_usual, class T>
TL_DEVICE Vec<std::remove_const_t<T>, n> load_elements(PackedPointer<T> p) {
  if constexpr (n == 1)
    return {{*p}};
  else
    return unpacked<std::remove_const_t<T>>(load_elements<n / 2, width, evict>(p.byte()));
}
template <int width, class T, int n> TL_DEVICE void store_elements(PackedPointer<T> p, const Vec<T, n>& v) {
  store_elements<width>(p.byte(), packed(v));
}
// Stores one element; another thread may store its neighbour in the byte concurrently.
template <class T> TL_DEVICE void store_half(PackedPointer<T> p, T x) {
  const int shift = static_cast<int>(p.index & 1) * 4;
  replace_bits(p.byte(), static_cast<uint8_t>(15 << shift), static_cast<uint8_t>(x.bits() << shift));
}
// The widest access that moves n elements at p, if p is aligned to `alignment` bytes.
template <class T, int n> TL_BOTH constexpr int access_width(int alignment) {
  return smaller(smaller(power_of_two_in(bytes_of<T>(n)), 16), alignment);
}

// An element of a tensor that may be out of bounds: it then loads zero, and stores are predicated off.
template <class T> struct Element {
  Pointer<T> p;
  bool inside;
  TL_DEVICE T load() const { return inside ? *p : T(0); }
  template <class X> TL_DEVICE void store(X x) const {
    if constexpr (is_packed<T>) {
      if (inside) store_half(p, convert<T>(value(x)));
    } else {
      if (inside) *p = convert<T>(value(x));
    }
  }
  TL_DEVICE operator T() const { return load(); }
  template <class X> TL_DEVICE const Element& operator=(X x) const { return store(x), *this; }
  TL_DEVICE const Element& operator=(const Element& other) const { return store(other.load()), *this; }
  template <class X> TL_DEVICE const Element& operator+=(X x) const { return *this = load() + value(x); }
  template <class X> TL_DEVICE const Element& operator-=(X x) const { return *this = load() - value(x); }
  template <class X> TL_DEVICE const Element& operator*=(X x) const { return *this = load() * value(x); }
  template <class X> TL_DEVICE const Element& operator/=(X x) const { return *this = load() / value(x); }
};
template <class T> TL_DEVICE T value(const Element<T>& x) { return x.load(); }

// n consecutive elements in registers, shared or global memory; Place defines load() and store().
template <class Place> struct Packet {
  using T = typename Place::type;
  static constexpr int n = Place::size;
  Place place;
  TL_DEVICE operator Vec<T, n>() const { return place.load(); }
  template <class X> TL_DEVICE const Packet& operator=(X x) const {
    if constexpr (packet_size<X> > 0) {
      place.store(convert<T>(value(x)));
    } else {
      Vec<T, n> v;
      TL_UNROLL
      for (int i = 0; i < n; ++i) v.at[i] = convert<T>(value(x));
      place.store(v);
    }
    return *this;
  }
  TL_DEVICE const Packet& operator=(const Packet& other) const { return place.store(other.place.load()), *this; }
  template <class X> TL_DEVICE const Packet& operator+=(X x) const { return *this = place.load() + value(x); }
  template <class X> TL_DEVICE const Packet& operator-=(X x) const { return *this = place.load() - value(x); }
  template <class X> TL_DEVICE const Packet& operator*=(X x) const { return *this = place.load() * value(x); }
  template <class X> TL_DEVICE const Packet& operator/=(X x) const { return *this = place.load() / value(x); }
};
template <class Place> struct PacketSize<Packet<Place>> {
  static constexpr int value = Place::size;
};
template <class Place> TL_DEVICE auto value(const Packet<Place>& packet) { return packet.place.load(); }

// Registers of this thread.
template <class T, int n> struct InRegisters {
  using type = T;
  static constexpr int size = n;
  T* p;
  TL_DEVICE Vec<T, n> load() const { return load_elements<n, 1>(p); }
  TL_DEVICE void store(const Vec<T, n>& v) const { store_elements<1>(p, v); }
};
// Shared memory, accessed in units of `width` bytes.
template <class T, int n, int width> struct InShared {
  using type = T;
  static constexpr int size = n;
  Pointer<T> p;
  TL_DEVICE Vec<T, n> load() const { return load_elements<n, width>(p); }
  TL_DEVICE void store(const Vec<T, n>& v) const { store_elements<width>(p, v); }
};

}  // namespace tl
