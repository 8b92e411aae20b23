// Atomic updates of elements, vectors and tiles. They are relaxed unless a memory order is given. Updates that are out
// of bounds are predicated off.
#pragma once
#include "copy.h"
#include "math.h"

namespace tl {

// Read-modify-write operations on the element at p. Types with a native atomic instruction use it.
struct AtomicAdd {
  template <class T> static TL_DEVICE T apply(T* p, T value) { return atomic_add(p, value); }
};
// If one operand is NaN, the result is the other, as in tl::max.
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

// Memory order of an access at the scope of the GPU. `release`: all earlier accesses of the thread precede it.
// `acquire`: all later accesses of the thread follow it. `acq_rel` and `seq_cst`: both.
enum MemoryOrder { acquire, release, acq_rel, seq_cst };
TL_DEVICE void fence_before(MemoryOrder order) {
  if (order != acquire) memory_fence();
}
TL_DEVICE void fence_after(MemoryOrder order) {
  if (order != release) memory_fence();
}

// ---- one element, or a vector ------------------------------------------------------------------------------------

template <class Op, class T, class X> TL_DEVICE T atomic_element(const Element<T>& to, const X& x) {
  static_assert(!std::is_const<T>::value, "the tensor's elements are constant");
  return to.inside ? Op::apply(to.p, convert<T>(value(x))) : T(0);
}
template <class Op, class T, class X>
TL_DEVICE std::enable_if_t<std::is_arithmetic<T>::value || is_small_float<T>, T> atomic_element(T& to, const X& x) {
  static_assert(!std::is_same<T, bool>::value && sizeof(T) > 1, "atomics of single bytes are unsupported");
  return Op::apply(&to, convert<T>(value(x)));
}

// The number of consecutive elements that one instruction updates, for n elements aligned to `width` bytes.
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

// Converts an operand to n elements of type T.
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
// Shared memory has no vector atomics.
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
  for (int iteration = 0; iteration < Pieces::iterations; ++iteration)
    if (Pieces::valid(iteration))
      atomic_element<Op>(chunk<vector>(to, Pieces::row(iteration), Pieces::col(iteration)),
                         chunk<vector>(from, Pieces::row(iteration), Pieces::col(iteration)));
}
template <class Op, int threads, class Tile, class View>
TL_DEVICE void atomic_shared_tile(const Tile& from, const Place<View>& to) {
  static_assert(View::rank == Tile::rank, "slice the other dimensions first: A(b, tl::all, tl::all).tile(i, j)");
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

// ---- public functions ---------------------------------------------------------------------------------------------

// tl::atomic_add(C(i, j), v): one atomic operation; any thread. Returns the previous value, or zero if out of bounds.
// With a vector as the last index it performs one atomic operation per element and returns nothing.
// tl::atomic_add(fragment, C.tile(i, j)), (fragment, shared_tile): updates every element, converted to the type of
// `to`. Called by: every thread of the block; only one of the threads that hold copies of an element updates it. Where
// the alignment of the rows allows it, one instruction updates two 16-bit elements, or on sm_90 up to four floats.
// tl::atomic_add<threads>(shared_tile, C.tile(i, j)): the same for a shared tile. Called by: `threads` threads, from
// thread 0 on. Reads the shared tile without a barrier.
// Floating-point sums depend on the order in which the updates are executed. Floating-point min and max are
// compare-and-swap loops. Bitwise and, or, xor and integer min and max take 16, 32 or 64 bits.
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
// The same for one element, with a memory order.
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

// tl::atomic_load(C(i, j)), atomic_store(C(i, j), v): one atomic access; any thread. An out-of-bounds load returns
// zero; an out-of-bounds store is predicated off.
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
