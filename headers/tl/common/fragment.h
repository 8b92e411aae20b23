// Fragments: tiles in registers.
#pragma once
#include "index.h"
#include "slice.h"
#include "spread.h"

namespace tl {

// Maps the indices of a loop to the register of a fragment of layout Layout. The loop runs over the same layout or
// another.
template <class Layout> struct RegisterOf {
  // f(i, j): the loop runs over the fragment's own layout, or has a third dimension.
  template <class I, class J> static TL_DEVICE int of(const I& i, const J&) {
    using From = typename I::Layout;
    static_assert(I::dim == 0 && J::dim == 1, "the indices of a fragment are in the order of its dimensions");
    static_assert(std::is_same<typename J::Layout, From>::value, "the indices belong to different loops");
    if constexpr (From::rank == 3) {
      static_assert(std::is_same<typename From::planes, Layout>::value,
                    "the fragment does not hold one value for each (i, j) of the loop's layout");
      return From::plane_register(i.reg);
    } else {
      static_assert(std::is_same<From, Layout>::value, "the loop runs over another layout than the fragment has");
      return i.reg;
    }
  }
  template <class I, class J, class K> static TL_DEVICE int of(const I& i, const J&, const K&) {
    static_assert(std::is_same<typename I::Layout, Layout>::value && std::is_same<typename K::Layout, Layout>::value,
                  "the loop runs over another layout than the fragment has");
    static_assert(I::dim == 0 && J::dim == 1 && K::dim == 2, "indices are in the order of the dimensions");
    return i.reg;
  }
  template <class I, class J, class K, class L> static TL_DEVICE int of(const I& i, const J&, const K&, const L&) {
    static_assert(std::is_same<typename I::Layout, Layout>::value && std::is_same<typename L::Layout, Layout>::value,
                  "the loop runs over another layout than the fragment has");
    static_assert(I::dim == 0 && J::dim == 1 && K::dim == 2 && L::dim == 3,
                  "indices are in the order of the dimensions");
    return i.reg;
  }
  // f(i): the loop runs over the fragment's own layout, or the fragment holds one value per row (or column) of the
  // loop's layout.
  template <class I> static TL_DEVICE int of(const I& i) {
    using From = typename I::Layout;
    if constexpr (std::is_same<From, Layout>::value) {
      return i.reg;
    } else if constexpr (I::dim == 0) {
      static_assert(From::rank == 2, "the loop runs over another layout than the fragment has");
      static_assert(std::is_same<typename From::rows, Layout>::value,
                    "the fragment does not hold one value per row of the loop's layout");
      return From::row_register(i.reg);
    } else {
      static_assert(std::is_same<typename From::cols, Layout>::value,
                    "the fragment does not hold one value per column of the loop's layout");
      return From::col_register(i.reg);
    }
  }
};

// State of a fragment besides its elements. Empty unless a layout specialises it.
template <class Layout> struct FragmentState {};

// Elements of type T, distributed over the registers of the threads by Layout.
template <class T, class Layout_> struct Fragment : FragmentState<Layout_> {
  using type = T;
  using Layout = Layout_;
  T reg[Layout::registers];

#if defined(TL_ENGINE_INSTRUMENTED)
  Fragment() { host::mark_unwritten(reg); }
#endif

  // The element at the indices of a tl::parallel loop; with a vector index, the elements.
  template <class... I> TL_DEVICE decltype(auto) operator()(const I&... i) {
    constexpr int n = (packet_size<I> + ...);
    static_assert(IsReplicated<Layout>::value || (std::is_class<I>::value && ...),
                  "a number indexes only a tl::Replicated fragment: use the indices of tl::parallel");
    if constexpr (IsReplicated<Layout>::value)
      return static_cast<T&>(reg[Layout::register_of(i...)]);
    else if constexpr ((is_spread<I> || ...))
      return Packet<InSpreadRegisters<T, n>>{{&reg[RegisterOf<Layout>::of(i...)]}};
    else if constexpr (n > 0)
      return Packet<InRegisters<T, n>>{{&reg[RegisterOf<Layout>::of(i...)]}};
    else
      return static_cast<T&>(reg[RegisterOf<Layout>::of(i...)]);
  }
};

template <class T, class Layout, class X> TL_DEVICE void fill(Fragment<T, Layout>& fragment, X x) {
  TL_UNROLL
  for (int r = 0; r < Layout::registers; ++r) fragment.reg[r] = convert<T>(x);
}
template <class T, class Layout> TL_DEVICE void clear(Fragment<T, Layout>& fragment) { fill(fragment, T(0)); }

}  // namespace tl
