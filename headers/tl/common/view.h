// The same memory, or the same registers, in another shape.
#pragma once
#include "fragment.h"
#include "split_columns.h"

namespace tl {

// A shared tile or private array as another one of the same size. Any thread. Writes by one name are seen by the other
// after the barrier (tl::sync_threads) that orders them between threads.
template <class To, class From> TL_DEVICE To& view_as(From& storage) {
  static_assert(sizeof(To) == sizeof(From), "both have the same size");
  return reinterpret_cast<To&>(storage);
}

// A tensor's bits as elements of another type.
template <class To, class From> TL_DEVICE To* bits_as(From* data) { return reinterpret_cast<To*>(data); }
template <class To, class From> TL_DEVICE const To* bits_as(const From* data) {
  return reinterpret_cast<const To*>(data);
}

// The elements at an address that a caller gives as a number. Any thread.
template <class T> TL_DEVICE T* data_at(uint64_t address) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}

// A fragment of results whose columns are seen as groups: it has no registers of its own.
template <class T, class Of, int width> struct Fragment<T, SplitColumns<Of, width>> {
  using type = T;
  using Layout = SplitColumns<Of, width>;
  T (&reg)[Layout::registers];

  template <class... I> TL_DEVICE T& operator()(const I&... i) { return reg[RegisterOf<Layout>::of(i...)]; }
};

// Groups of `width` columns of a fragment as a dimension of their own: (row, group, column in the group).
template <int width, class T, class Layout>
TL_DEVICE Fragment<T, SplitColumns<Layout, width>> split_columns(Fragment<T, Layout>& fragment) {
  return {fragment.reg};
}

}  // namespace tl
