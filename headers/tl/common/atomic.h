// Atomic updates of elements, packets and tiles. They order nothing else, unless an order is asked for. What lies
// outside a tensor is left alone.
#pragma once
#include "copy.h"
#include "math.h"

namespace tl {

// What is done to one element at p, by the machine where it has an instruction for the type.
struct AtomicAdd {
  template <class T> static TL_DEVICE T apply(T* p, T value) { return atomic_add(p, value); }
};
// A NaN loses against a number, as in tl::max.
struct AtomicMax {
  template <class T> static TL_DEVICE T apply(T* p, T value) {
    if constexpr (is_float<T>)
      return atomic_update(p, [&](T before) { return Max{}(before, value); });
    else
      return atomic_max(p, value);
  }
};
struct AtomicMin {
  template <class T> static TL_DEVICE T apply(T* p, T value) {
    if constexpr (is_float<T>)
      return atomic_update(p, [&](T before) { return Min{}(before, value); });
    else
      return atomic_min(p, value);
  }
};
struct AtomicAnd {
  template <class T> static TL_DEVICE T apply(T* p, T value) { return atomic_and(p, value); }
};
struct AtomicOr {
  template <class T> static TL_DEVICE T apply(T* p, T value) { return atomic_or(p, value); }
};
struct AtomicXor {
  template <class T> static TL_DEVICE T apply(T* p, T value) { return atomic_xor(p, value); }
};

// What an access of a thread orders, seen from the whole GPU: with `release`, all that the thread did before it comes
// first; with `acquire`, all that the thread does after it comes later; the last two do both.
enum MemoryOrder { acquire, release, acq_rel, seq_cst };
TL_DEVICE void fence_before(MemoryOrder order) {
  if (order != acquire) memory_fence();
}
TL_DEVICE void fence_after(MemoryOrder order) {
  if (order != release) memory_fence();
}

// ---- one element, or a packet ------------------------------------------------------------------------------------

template <class Op, class T, class X> TL_DEVICE T atomic_element(const Element<T>& to, const X& x) {
  static_assert(!std::is_const<T>::value, "the tensor's elements are constant");
  return to.inside ? Op::apply(to.p, convert<T>(value(x))) : T(0);
}
template <class Op, class T, class X>
TL_DEVICE std::enable_if_t<std::is_arithmetic<T>::value || is_small_float<T>, T> atomic_element(T& to, const X& x) {
  static_assert(!std::is_same<T, bool>::value && sizeof(T) > 1, "no machine updates single bytes atomically");
  return Op::apply(&to, convert<T>(value(x)));
}

// How many neighbours one instruction adds to, of n that start at a multiple of `width` bytes.
template <class Op, class T> TL_BOTH constexpr int atomic_group(int n, int width) {
  if (!std::is_same<Op, AtomicAdd>::value) return 1;
  const int widest = std::is_same<T, float>::value ? 4 : is_small_float<T> ? 2 : 1;
  return smaller(smaller(widest, power_of_two_in(n)), width / int(sizeof(T)) > 0 ? width / int(sizeof(T)) : 1);
}
template <class Op, int width, class T, int n> TL_DEVICE void atomic_elements(T* p, const Vec<T, n>& v) {
  constexpr int group = atomic_group<Op, T>(n, width);
  TL_UNROLL
  for (int i = 0; i < n; i += group) {
    if constexpr (group == 1) {
      Op::apply(p + i, v.at[i]);
    } else {
      Vec<T, group> part;
      TL_UNROLL
      for (int e = 0; e < group; ++e) part.at[e] = v.at[i + e];
      if constexpr (group == 4)
        atomic_add_4(p + i, bit_cast<uint4>(part));
      else if constexpr (sizeof(T) == 4)
        atomic_add_2(p + i, bit_cast<uint2>(part));
      else
        atomic_add_2(p + i, bit_cast<uint32_t>(part));
    }
  }
}

// An operand as n elements of type T.
template <class T, int n, class X> TL_DEVICE Vec<T, n> elements_of(const X& x) {
  const auto values = value(x);
  Vec<T, n> v;
  TL_UNROLL
  for (int i = 0; i < n; ++i) v.at[i] = convert<T>(element(values, i));
  return v;
}
template <class Op, class T, int n, int width, bool guarded, bool whole, class X>
TL_DEVICE void atomic_element(const Packet<InGlobal<T, n, width, guarded, whole>>& to, const X& x) {
  const Vec<T, n> v = elements_of<T, n>(x);
  const auto& place = to.place;
  if (place.vector && place.all_inside()) {
    atomic_elements<Op, width>(place.p, v);
  } else {
    TL_UNROLL
    for (int i = 0; i < n; ++i)
      if (place.inside_at(i)) Op::apply(place.p + i * place.stride, v.at[i]);
  }
}
// In shared memory there are no instructions for several.
template <class Op, class T, int n, int width, class X>
TL_DEVICE void atomic_element(const Packet<InShared<T, n, width>>& to, const X& x) {
  atomic_elements<Op, 1>(to.place.p, elements_of<T, n>(x));
}

// ---- tiles -------------------------------------------------------------------------------------------------------

template <class Op, int vector, class T, class Layout, class Memory>
TL_DEVICE void atomic_fragment(const Fragment<T, Layout>& from, Memory&& to) {
  if (Layout::replica() != 0) return;
  TL_UNROLL
  for (int r = 0; r < Layout::registers; r += vector)
    if (Layout::valid(r)) atomic_element<Op>(packet_at<vector, Layout>(to, r), load_elements<vector, 1>(&from.reg[r]));
}
template <class Op, class T, class Layout, class View>
TL_DEVICE void atomic_tile(const Fragment<T, Layout>& from, const Place<View>& to) {
  constexpr int size = sizeof(typename View::type), group = atomic_group<Op, typename View::T>(Layout::vector, 16);
  if constexpr (View::alignment != 0) {
    atomic_fragment<Op, Layout::vector>(from, to);
  } else {
    if (group > 1 && to.aligned(group * size))
      atomic_fragment<Op, Layout::vector>(from, to.template with_row_start<group * size>());
    else
      atomic_fragment<Op, Layout::vector>(from, to.template with_row_start<size>());
  }
}
template <class Op, class T, class Layout, class Tile>
TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> atomic_tile(const Fragment<T, Layout>& from, Tile& to) {
  atomic_fragment<Op, vector_in<Layout, Tile>()>(from, to);
}

template <class Op, int threads, int vector, class Tile, class To>
TL_DEVICE void atomic_chunks(const Tile& from, const To& to) {
  using Pieces = ChunksOf<threads, Tile, vector>;
  TL_UNROLL_LITTLE
  for (int turn = 0; turn < Pieces::turns; ++turn)
    if (Pieces::valid(turn))
      atomic_element<Op>(chunk<vector>(to, Pieces::row(turn), Pieces::col(turn)),
                         chunk<vector>(from, Pieces::row(turn), Pieces::col(turn)));
}
template <class Op, int threads, class Tile, class View>
TL_DEVICE void atomic_shared_tile(const Tile& from, const Place<View>& to) {
  static_assert(View::rank == Tile::rank, "fix the other dimensions first: A(b, tl::all, tl::all).tile(i, j)");
  constexpr int size = sizeof(typename View::type);
  constexpr int group = atomic_group<Op, typename View::T>(Tile::cols, Tile::chunk_bytes);
  if constexpr (View::alignment != 0) {
    atomic_chunks<Op, threads, group>(from, to);
  } else {
    if (group > 1 && to.aligned(group * size))
      atomic_chunks<Op, threads, group>(from, to.template with_row_start<group * size>());
    else
      atomic_chunks<Op, threads, group>(from, to.template with_row_start<size>());
  }
}

// ---- the names ---------------------------------------------------------------------------------------------------

// tl::atomic_add(C(i, j), v): one indivisible step; any thread. It returns what was there before, or zero outside. With
// a packet for the last index it is one step an element, and returns nothing.
// tl::atomic_add(fragment, C.tile(i, j)), (fragment, shared_tile): every element, converted to the type of `to`. Called
// by: every thread of the block; copies of an element count once. Two 16-bit neighbours, and up to four floats on
// sm_90, are one instruction where rows allow it.
// tl::atomic_add<threads>(shared_tile, C.tile(i, j)): the same by `threads` threads, from thread 0 on; reads the shared
// tile without a barrier.
// Sums of floats depend on the order of arrival. min and max of floats exchange until nobody came between; bits (and,
// or, xor), max and min of integers: 16, 32 or 64 bits wide.
#define TL_ATOMIC(name, Op)                                                                                        \
  template <class T, class X> TL_DEVICE T name(const Element<T>& to, X x) { return atomic_element<Op>(to, x); }    \
  template <class Where, class X> TL_DEVICE void name(const Packet<Where>& to, X x) { atomic_element<Op>(to, x); } \
  template <class T, class X>                                                                                      \
  TL_DEVICE std::enable_if_t<std::is_arithmetic<T>::value || is_small_float<T>, T> name(T& to, X x) {              \
    return atomic_element<Op>(to, x);                                                                              \
  }                                                                                                                \
  template <class T, class Layout, class View>                                                                     \
  TL_DEVICE void name(const Fragment<T, Layout>& from, const Place<View>& to) {                                    \
    atomic_tile<Op>(from, to);                                                                                     \
  }                                                                                                                \
  template <class T, class Layout, class Tile>                                                                     \
  TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> name(const Fragment<T, Layout>& from, Tile& to) {               \
    atomic_tile<Op>(from, to);                                                                                     \
  }                                                                                                                \
  template <int threads, class Tile, class View>                                                                   \
  TL_DEVICE std::enable_if_t<is_shared_tile<Tile>> name(const Tile& from, const Place<View>& to) {                 \
    atomic_shared_tile<Op, threads>(from, to);                                                                     \
  }
// The same of one element, in an order.
#define TL_ATOMIC_IN_ORDER(name)                                                      \
  template <class To, class X> TL_DEVICE auto name(To&& to, X x, MemoryOrder order) { \
    fence_before(order);                                                              \
    const auto before = name(to, x);                                                  \
    fence_after(order);                                                               \
    return before;                                                                    \
  }
TL_ATOMIC(atomic_add, AtomicAdd)
TL_ATOMIC(atomic_max, AtomicMax)
TL_ATOMIC(atomic_min, AtomicMin)
TL_ATOMIC(atomic_and, AtomicAnd)
TL_ATOMIC(atomic_or, AtomicOr)
TL_ATOMIC(atomic_xor, AtomicXor)
TL_ATOMIC_IN_ORDER(atomic_add)
TL_ATOMIC_IN_ORDER(atomic_max)
TL_ATOMIC_IN_ORDER(atomic_min)
TL_ATOMIC_IN_ORDER(atomic_and)
TL_ATOMIC_IN_ORDER(atomic_or)
TL_ATOMIC_IN_ORDER(atomic_xor)
#undef TL_ATOMIC
#undef TL_ATOMIC_IN_ORDER

// tl::atomic_load(C(i, j)), atomic_store(C(i, j), v): an element in one step; any thread. Outside of a tensor it reads
// zero and writes nothing.
template <class T> TL_DEVICE std::remove_const_t<T> atomic_load(const Element<T>& from) {
  return from.inside ? load_atomically(from.p) : std::remove_const_t<T>(0);
}
template <class T>
TL_DEVICE std::enable_if_t<std::is_arithmetic<T>::value || is_small_float<T>, T> atomic_load(const T& from) {
  return load_atomically(&from);
}
template <class From> TL_DEVICE auto atomic_load(From&& from, MemoryOrder order) {
  fence_before(order);
  const auto now = atomic_load(from);
  fence_after(order);
  return now;
}
template <class T, class X> TL_DEVICE void atomic_store(const Element<T>& to, X x) {
  if (to.inside) store_atomically(to.p, convert<T>(value(x)));
}
template <class T, class X>
TL_DEVICE std::enable_if_t<std::is_arithmetic<T>::value || is_small_float<T>> atomic_store(T& to, X x) {
  store_atomically(&to, convert<T>(value(x)));
}
template <class To, class X> TL_DEVICE void atomic_store(To&& to, X x, MemoryOrder order) {
  fence_before(order);
  atomic_store(to, x);
  fence_after(order);
}

}  // namespace tl
