// Views: the same memory, or the same registers, with another shape.
#pragma once
#include "fragment.h"
#include "split_columns.h"

namespace tl {

// A shared tile or private array viewed as another one of the same size. Any thread. Writes through one view are
// visible to other threads through the other after a barrier (tl::sync_threads).
template <class To, class From> TL_DEVICE To& view_as(From& storage) {
  static_assert(sizeof(To) == sizeof(From), "both have the same size");
  return reinterpret_cast<To&>(storage);
}

// Reinterprets the elements of a tensor as another type.
template <class To, class From> TL_DEVICE To* bits_as(From* data) { return reinterpret_cast<To*>(data); }
template <class To, class From> TL_DEVICE const To* bits_as(const From* data) {
  return reinterpret_cast<const To*>(data);
}

// A pointer to the elements at an address that is passed as a number. Any thread.
template <class T> TL_DEVICE T* data_at(uint64_t address) {
  return reinterpret_cast<T*>(static_cast<uintptr_t>(address));
}

// A view of an accumulator fragment with its columns split into groups; it has no registers of its own.
template <class T, class Of, int width> struct Fragment<T, SplitColumns<Of, width>> {
  using type = T;
  using Layout = SplitColumns<Of, width>;
  T (&reg)[Layout::registers];

  template <class... I> TL_DEVICE T& operator()(const I&... i) { return reg[RegisterOf<Layout>::of(i...)]; }
};

// Views groups of `width` columns of a fragment as a dimension: (row, group, column in the group).
template <int width, class T, class Layout>
TL_DEVICE Fragment<T, SplitColumns<Layout, width>> split_columns(Fragment<T, Layout>& fragment) {
  return {fragment.reg};
}

}  // namespace tl
