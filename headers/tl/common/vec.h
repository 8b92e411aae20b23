// Vec: consecutive elements in registers, with elementwise arithmetic.
#pragma once
#include "base.h"

namespace tl {

template <class T, int n> struct Vec {
  using type = T;
  static constexpr int size = n;
  T at[n];
  TL_DEVICE T& operator[](int i) { return at[i]; }
  TL_DEVICE const T& operator[](int i) const { return at[i]; }
};

// Transposes bytes: word i of the result consists of byte i of each of the four words.
struct FourWords {
  uint32_t word[4];
};
TL_DEVICE FourWords transposed_bytes(const FourWords& of) {
  const uint32_t low[2] = {lower_bytes(of.word[0], of.word[1]), lower_bytes(of.word[2], of.word[3])};
  const uint32_t high[2] = {upper_bytes(of.word[0], of.word[1]), upper_bytes(of.word[2], of.word[3])};
  return {{lower_halves(low[0], low[1]), upper_halves(low[0], low[1]), lower_halves(high[0], high[1]),
           upper_halves(high[0], high[1])}};
}

// The number of elements of an operand; 0 for a scalar. Proxies for elements in memory specialise it (packet.h).
template <class X> struct PacketSize {
  static constexpr int value = 0;
};
template <class T, int n> struct PacketSize<Vec<T, n>> {
  static constexpr int value = n;
};
template <class X> constexpr int packet_size = PacketSize<std::decay_t<X>>::value;
template <class A, class B> constexpr int common_size = packet_size<A> > 0 ? packet_size<A> : packet_size<B>;

// The value of an operand: itself, or the result of a proxy's load.
template <class X> TL_DEVICE const X& value(const X& x) { return x; }

// Element i of an operand; all elements of a scalar are the scalar.
template <class X> TL_DEVICE const X& element(const X& x, int) { return x; }
template <class T, int n> TL_DEVICE const T& element(const Vec<T, n>& x, int i) { return x.at[i]; }

// One instruction converts two floats to two 16-bit values, which remain packed until an element is accessed.
template <class To, class T, int n> TL_DEVICE Vec<To, n> convert(const Vec<T, n>& from) {
  if constexpr (std::is_same<To, T>::value) {
    return from;
  } else if constexpr (is_small_float<To> && std::is_same<T, float>::value && n % 2 == 0) {
    Vec<uint32_t, n / 2> pairs;
    TL_UNROLL
    for (int i = 0; i < n; i += 2) pairs.at[i / 2] = pack2(from.at[i], from.at[i + 1], To());
    return bit_cast<Vec<To, n>>(pairs);
  } else if constexpr (is_float8<To> && std::is_same<T, float>::value && n % 2 == 0) {
    Vec<uint16_t, n / 2> pairs;
    TL_UNROLL
    for (int i = 0; i < n; i += 2) pairs.at[i / 2] = To::pair(from.at[i], from.at[i + 1]);
    return bit_cast<Vec<To, n>>(pairs);
  } else if constexpr (is_float8<T> && n % 2 == 0) {
    const auto pairs = bit_cast<Vec<uint16_t, n / 2>>(from);
    Vec<uint32_t, n / 2> halves;
    TL_UNROLL
    for (int i = 0; i < n / 2; ++i) halves.at[i] = T::halves(pairs.at[i]);
    return convert<To>(bit_cast<Vec<half, n>>(halves));
  } else {
    Vec<To, n> to;
    TL_UNROLL
    for (int i = 0; i < n; ++i) to.at[i] = convert<To>(from.at[i]);
    return to;
  }
}

// Addition, subtraction and multiplication of half use packed instructions, one per pair.
struct Plus;
struct Minus;
struct Times;
template <class X> using ElementOf = std::decay_t<decltype(element(value(std::declval<const X&>()), 0))>;
template <class F, class A, class B> constexpr bool in_pairs_of() {
  constexpr bool paired =
      std::is_same<F, Plus>::value || std::is_same<F, Minus>::value || std::is_same<F, Times>::value;
  if constexpr (paired && common_size<A, B> % 2 == 0)
    return std::is_same<ElementOf<A>, half>::value && std::is_same<ElementOf<B>, half>::value;
  else
    return false;
}
template <class F, class A, class B> constexpr bool in_pairs = in_pairs_of<F, A, B>();
template <int pairs> TL_DEVICE Vec<uint32_t, pairs> pairs_of(const Vec<half, 2 * pairs>& v) {
  return bit_cast<Vec<uint32_t, pairs>>(v);
}
template <int pairs> TL_DEVICE Vec<uint32_t, pairs> pairs_of(half x) {
  Vec<uint32_t, pairs> same;
  TL_UNROLL
  for (int i = 0; i < pairs; ++i) same.at[i] = pack_bits(x, x);
  return same;
}

// Applies f to scalars, or elementwise.
template <class F, class X> TL_DEVICE auto apply(F f, const X& x) {
  if constexpr (packet_size<X> == 0) {
    return f(value(x));
  } else {
    const auto v = value(x);
    Vec<decltype(f(v.at[0])), packet_size<X>> result;
    TL_UNROLL
    for (int i = 0; i < packet_size<X>; ++i) result.at[i] = f(v.at[i]);
    return result;
  }
}
template <class F, class A, class B> TL_DEVICE auto apply(F f, const A& a, const B& b) {
  if constexpr (common_size<A, B> == 0) {
    return f(value(a), value(b));
  } else if constexpr (in_pairs<F, A, B>) {
    constexpr int pairs = common_size<A, B> / 2;
    const auto x = pairs_of<pairs>(value(a));
    const auto y = pairs_of<pairs>(value(b));
    Vec<uint32_t, pairs> result;
    TL_UNROLL
    for (int i = 0; i < pairs; ++i) result.at[i] = f.pair(x.at[i], y.at[i]);
    return bit_cast<Vec<half, 2 * pairs>>(result);
  } else {
    const auto x = value(a);
    const auto y = value(b);
    Vec<decltype(f(element(x, 0), element(y, 0))), common_size<A, B>> result;
    TL_UNROLL
    for (int i = 0; i < common_size<A, B>; ++i) result.at[i] = f(element(x, i), element(y, i));
    return result;
  }
}
template <class F, class A, class B, class C> TL_DEVICE auto apply(F f, const A& a, const B& b, const C& c) {
  constexpr int n = common_size<A, B> > 0 ? common_size<A, B> : packet_size<C>;
  const auto x = value(a);
  const auto y = value(b);
  const auto z = value(c);
  if constexpr (n == 0) {
    return f(x, y, z);
  } else {
    Vec<decltype(f(element(x, 0), element(y, 0), element(z, 0))), n> result;
    TL_UNROLL
    for (int i = 0; i < n; ++i) result.at[i] = f(element(x, i), element(y, i), element(z, i));
    return result;
  }
}

// The operators are enabled if one of the operands is a vector.
template <class A, class B> using IfPacket = std::enable_if_t<(common_size<A, B> > 0)>;

#define TL_VEC_OPERATOR(Name, op, ...)                                                                     \
  struct Name {                                                                                            \
    template <class A, class B> TL_DEVICE auto operator()(const A& a, const B& b) const { return a op b; } \
    __VA_ARGS__                                                                                            \
  };                                                                                                       \
  template <class A, class B, class = IfPacket<A, B>> TL_DEVICE auto operator op(A a, B b) {               \
    return apply(Name{}, a, b);                                                                            \
  }
#define TL_PAIR(name) \
  static TL_DEVICE uint32_t pair(uint32_t a, uint32_t b) { return name(a, b, half()); }
TL_VEC_OPERATOR(Plus, +, TL_PAIR(add2))
TL_VEC_OPERATOR(Minus, -, TL_PAIR(subtract2))
TL_VEC_OPERATOR(Times, *, TL_PAIR(multiply2))
#undef TL_PAIR
TL_VEC_OPERATOR(DividedBy, /, )
TL_VEC_OPERATOR(Modulo, %, )
TL_VEC_OPERATOR(BitAnd, &, )
TL_VEC_OPERATOR(BitOr, |, )
TL_VEC_OPERATOR(BitXor, ^, )
TL_VEC_OPERATOR(ShiftLeft, <<, )
TL_VEC_OPERATOR(ShiftRight, >>, )
TL_VEC_OPERATOR(Less, <, )
TL_VEC_OPERATOR(LessOrEqual, <=, )
TL_VEC_OPERATOR(Greater, >, )
TL_VEC_OPERATOR(GreaterOrEqual, >=, )
TL_VEC_OPERATOR(Equal, ==, )
TL_VEC_OPERATOR(NotEqual, !=, )
TL_VEC_OPERATOR(And, &&, )
TL_VEC_OPERATOR(Or, ||, )
#undef TL_VEC_OPERATOR

struct Negate {
  template <class A> TL_DEVICE auto operator()(const A& a) const { return -a; }
};
struct Not {
  template <class A> TL_DEVICE auto operator()(const A& a) const { return !a; }
};
struct Complement {
  template <class A> TL_DEVICE auto operator()(const A& a) const { return ~a; }
};
template <class A, class = IfPacket<A, A>> TL_DEVICE auto operator~(A a) { return apply(Complement{}, a); }
template <class A, class = IfPacket<A, A>> TL_DEVICE auto operator-(A a) { return apply(Negate{}, a); }
template <class A, class = IfPacket<A, A>> TL_DEVICE auto operator!(A a) { return apply(Not{}, a); }

}  // namespace tl
