// Packed elements: 4-bit elements share a byte, the first one in bits 0..3.
#pragma once
#include "vec.h"

namespace tl {

// The bytes that a number of elements occupies in memory, and the number of elements in a number of bytes.
template <class T> TL_BOTH constexpr int bytes_of(int elements) {
  return is_packed<T> ? elements / 2 : elements * static_cast<int>(sizeof(T));
}
template <class T> TL_BOTH constexpr int elements_in(int bytes) {
  return is_packed<T> ? bytes * 2 : bytes / static_cast<int>(sizeof(T));
}
// The smallest store, in elements: if two threads stored the halves of one byte, one of the stores would be lost.
template <class T> constexpr int fewest_written = is_packed<T> ? 2 : 1;

// A pointer to packed elements. It counts in elements, as T* does. Only loads of single elements are defined here:
// store_half stores one element, store_elements pairs.
template <class T> struct PackedPointer {
  using Byte = std::conditional_t<std::is_const<T>::value, const uint8_t, uint8_t>;
  using Value = std::remove_const_t<T>;
  Byte* start;
  int64_t index;

  // The byte that contains the element and its neighbour.
  TL_DEVICE Byte* byte() const { return start + index / 2; }
  TL_DEVICE operator Byte*() const { return byte(); }
  TL_DEVICE const Value operator*() const {
    return Value::from_bits(static_cast<uint8_t>(start[index >> 1] >> (index & 1) * 4));
  }
  TL_DEVICE const Value operator[](int64_t i) const { return *(*this + i); }
  TL_DEVICE PackedPointer operator+(int64_t n) const { return {start, index + n}; }
  TL_DEVICE PackedPointer& operator+=(int64_t n) { return *this = *this + n; }
};
// The pointee type of a kernel argument: a byte with two elements.
template <class T> struct Packed {
  uint8_t bits;
};
// The elements that a kernel argument points to.
template <class T> struct ElementsBehind {
  using type = T;
  static TL_DEVICE T* first(T* data) { return data; }
};
template <class T> struct ElementsBehind<Packed<T>> {
  using type = T;
  static TL_DEVICE PackedPointer<T> first(Packed<T>* data) { return {reinterpret_cast<uint8_t*>(data), 0}; }
};
template <class T> struct ElementsBehind<const Packed<T>> {
  using type = const T;
  static TL_DEVICE PackedPointer<const T> first(const Packed<T>* data) {
    return {reinterpret_cast<const uint8_t*>(data), 0};
  }
};
template <class T> using ElementIn = typename ElementsBehind<T>::type;
template <class T> TL_DEVICE auto first_element(T* data) { return ElementsBehind<T>::first(data); }

template <class T> struct Element;  // packet.h

// The storage type of a tile's elements, a pointer to an element, and the result of A(i, j).
template <class T, bool = is_packed<T>> struct InMemory {
  using Stored = T;
  using Pointer = T*;
  using Reference = T&;
  static TL_DEVICE Pointer at(Stored* data, int64_t element) { return data + element; }
  static TL_DEVICE Reference element(Pointer p) { return *p; }
};
template <class T> struct InMemory<T, true> {
  using Stored = std::conditional_t<std::is_const<T>::value, const uint8_t, uint8_t>;
  using Pointer = PackedPointer<T>;
  using Reference = std::conditional_t<std::is_const<T>::value, const std::remove_const_t<T>, Element<T>>;
  static TL_DEVICE Pointer at(Stored* data, int64_t element) { return {data, element}; }
  static TL_DEVICE Reference element(Pointer p) {
    if constexpr (std::is_const<T>::value)
      return *p;
    else
      return {p, true};
  }
};
template <class T> using Stored = typename InMemory<T>::Stored;
template <class T> using Pointer = typename InMemory<T>::Pointer;
template <class T> using Reference = typename InMemory<T>::Reference;

// Unpacks bytes to elements, the first one in bits 0..3, and packs them. n is even.
template <class T, int bytes> TL_DEVICE Vec<T, 2 * bytes> unpacked(const Vec<uint8_t, bytes>& packed) {
  Vec<T, 2 * bytes> v;
  TL_UNROLL
  for (int i = 0; i < 2 * bytes; ++i) v.at[i] = T::from_bits(static_cast<uint8_t>(packed.at[i / 2] >> i % 2 * 4));
  return v;
}
template <class T, int n> TL_DEVICE Vec<uint8_t, n / 2> packed(const Vec<T, n>& v) {
  static_assert(n % 2 == 0, "elements that share a byte are written together");
  Vec<uint8_t, n / 2> bytes;
  TL_UNROLL
  for (int i = 0; i < n / 2; ++i) bytes.at[i] = static_cast<uint8_t>(v.at[2 * i].bits() | v.at[2 * i + 1].bits() << 4);
  return bytes;
}

}  // namespace tl
