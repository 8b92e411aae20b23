// Views of tensors in global memory, and tiles of them.
#pragma once
#include "index.h"
#include "shape.h"

namespace tl {

// Known alignment of rows: every row, and every column offset that is used, is a multiple of `bytes`.
template <int bytes> struct Aligned {
  static_assert(bytes > 0 && bytes <= 16 && (bytes & (bytes - 1)) == 0, "a power of two up to 16");
  static constexpr int alignment = bytes;
  static constexpr Evict evict = Evict::as_usual;
};
// Unknown alignment: each copy tests it once at run time.
struct AnyAlignment {
  static constexpr int alignment = 0;
  static constexpr Evict evict = Evict::as_usual;
};
// The same for a view whose loads have a cache eviction priority.
template <class Start, Evict policy> struct Evicting : Start {
  static constexpr Evict evict = policy;
};
template <int bytes> struct StartOfRows {
  using type = Aligned<bytes>;
};
template <> struct StartOfRows<0> {  // half a byte: elements are accessed one by one
  using type = AnyAlignment;
};
template <int bytes> using StartOf = typename StartOfRows<bytes>::type;

// An extent that tiles need not divide: out-of-bounds loads return zero, out-of-bounds stores are predicated off.
struct Predicated {
  int extent;
};
TL_DEVICE constexpr Predicated predicated(int extent) { return {extent}; }
TL_BOTH constexpr int extent_of(int extent) { return extent; }
TL_BOTH constexpr int extent_of(Predicated extent) { return extent.extent; }

// Bit d is set if flag d is true.
template <bool... flags> TL_BOTH constexpr unsigned bits_of() {
  unsigned bits = 0, bit = 1;
  ((bits |= flags ? bit : 0, bit *= 2), ...);
  return bits;
}
TL_BOTH constexpr int count_bits(unsigned bits) { return bits == 0 ? 0 : int(bits & 1) + count_bits(bits >> 1); }

// Consecutive elements of a row in global memory, some of which may be out of bounds.
template <class T_, int n, int width, bool guarded, bool whole, Evict evict = Evict::as_usual> struct InGlobal {
  using type = T_;
  using T = std::remove_const_t<T_>;
  static constexpr int size = n;
  Pointer<T_> p;
  int64_t stride;     // between consecutive elements, in elements
  int first, extent;  // along the row
  bool inside;        // along the other dimensions
  bool vector;        // p is aligned to `width` bytes and stride is 1

  // Whether all elements are in bounds. With `whole` they are if the first one is.
  TL_DEVICE bool all_inside() const {
    if constexpr (!guarded) return inside;
    if constexpr (whole) return inside && unsigned(first) < unsigned(extent);
    return inside && first >= 0 && first <= extent - n;
  }
  TL_DEVICE bool inside_at(int i) const {
    return inside && (!guarded || unsigned(first) + unsigned(i) < unsigned(extent));
  }

  TL_DEVICE Vec<T, n> load() const {
    if (vector && (whole || !guarded)) return load_whole();
    Vec<T, n> v;
    if (vector && all_inside()) {
      v = load_elements<n, width, evict>(p);
    } else {
      TL_UNROLL
      for (int i = 0; i < n; ++i) v.at[i] = inside_at(i) ? p[i * stride] : T(0);
    }
    return v;
  }
  TL_DEVICE void store(const Vec<T, n>& v) const {
    if (vector && all_inside()) {
      store_elements<width>(p, v);
    } else if (!(vector && (whole || !guarded))) {
      TL_UNROLL
      for (int i = 0; i < n; i += fewest_written<T>)
        if (inside_at(i)) store_fewest(i, v);
    }
  }

 private:
  // Loads all elements, or returns zeros.
  TL_DEVICE Vec<T, n> load_whole() const {
    if constexpr (sizeof(Vec<T, n>) % 4 == 0 && !is_packed<T>) {
      Vec<uint32_t, sizeof(Vec<T, n>) / 4> words{};
      if constexpr (sizeof(words) == 16 && width == 16)
        words = bit_cast<decltype(words)>(load16_as<evict>(p, all_inside()));
      else if (all_inside())
        words = bit_cast<decltype(words)>(load_elements<n, width, evict>(p));
      TL_UNROLL
      for (int i = 0; i < words.size; ++i) words.at[i] = whole_word(words.at[i]);
      return bit_cast<Vec<T, n>>(words);
    } else {
      Vec<T, n> v{};
      if (all_inside()) v = load_elements<n, width, evict>(p);
      return v;
    }
  }
  TL_DEVICE void store_fewest(int i, const Vec<T, n>& v) const {
    if constexpr (is_packed<T>)
      store_elements<1>(p + i * stride, Vec<T, 2>{{v.at[i], v.at[i + 1]}});
    else
      p[i * stride] = v.at[i];
  }
};

template <class View> struct Place;

// Coordinates in a tensor, outermost first.
template <int rank> struct At {
  int coordinate[rank];
};
template <class... I> TL_DEVICE At<sizeof...(I)> at(I... i) { return {{int_index(i)...}}; }

// A view of a tensor. Bit d of `predicated_dims` is set if dimension d is bounds-checked. `whole_rows`: rows are
// contiguous, so that a vector size that divides the distance of two rows also divides a row.
template <class T_, class Start, int rank_, unsigned predicated_dims, bool whole_rows> struct Tensor {
  using type = T_;
  using T = std::remove_const_t<T_>;
  static constexpr int rank = rank_, alignment = Start::alignment, last = rank - 1;
  static constexpr bool has_whole_rows = whole_rows, guarded = predicated_dims != 0;

  Pointer<T_> data;
  int64_t stride[rank];
  int extent[rank];

  TL_BOTH static constexpr bool is_predicated(int dim) { return predicated_dims >> dim & 1; }
  TL_DEVICE bool inside(int dim, int i) const { return !is_predicated(dim) || unsigned(i) < unsigned(extent[dim]); }

  // Whether every row of a tile at these indices is aligned to `bytes`. Each condition is a separate test, so that the
  // compiler hoists those that are loop-invariant.
  TL_DEVICE bool aligned(const int (&at)[rank], int bytes) const {
    constexpr int per_byte = is_packed<T> ? 2 : 1, size = sizeof(T);
    bool result = reinterpret_cast<uintptr_t>(static_cast<const void*>(data)) % bytes == 0 && stride[last] == 1;
    TL_UNROLL
    for (int d = 0; d < last; ++d) result = result && stride[d] * size % (bytes * per_byte) == 0;
    return result && unsigned(at[last]) * size % (bytes * per_byte) == 0;
  }
  // The same view, with rows known to be aligned to `bytes`.
  template <int bytes> TL_DEVICE auto with_row_start() const {
    Tensor<T_, Evicting<StartOf<bytes>, Start::evict>, rank, predicated_dims, whole_rows> view;
    view.data = data;
    TL_UNROLL
    for (int d = 0; d < rank; ++d) view.stride[d] = stride[d], view.extent[d] = extent[d];
    return view;
  }

  // The same view, with a cache eviction priority for its loads.
  template <Evict policy> TL_DEVICE auto evicting() const {
    Tensor<T_, Evicting<Start, policy>, rank, predicated_dims, whole_rows> view;
    view.data = data;
    TL_UNROLL
    for (int d = 0; d < rank; ++d) view.stride[d] = stride[d], view.extent[d] = extent[d];
    return view;
  }

  // The same view without bounds checks, if all used indices are in bounds.
  TL_DEVICE auto unguarded() const {
    Tensor<T_, Start, rank, 0, whole_rows> view;
    view.data = data;
    TL_UNROLL
    for (int d = 0; d < rank; ++d) view.stride[d] = stride[d], view.extent[d] = extent[d];
    return view;
  }

  // The address of an element, which may be out of bounds, where it wraps.
  TL_DEVICE Pointer<T_> address(const int (&at)[rank]) const {
    uint64_t offset = 0;
    TL_UNROLL
    for (int d = 0; d < rank; ++d) offset += uint64_t(int64_t(at[d])) * uint64_t(stride[d]);
    return data + int64_t(offset);
  }

  // A reference to an element, also of a const tensor.
  template <class... I> TL_DEVICE Element<T_> at(I... i) const {
    static_assert(sizeof...(I) == rank, "as many indices as the tensor has dimensions");
    const int place[rank] = {first_of_vector(i)...};
    return {address(place), inside(place)};
  }
  // A(i, tl::all): a view of the remaining dimensions at i. A(i, j): one element, which loads zero out of bounds; of a
  // const tensor it is the value. A(i, vector index): several consecutive elements.
  template <class... I> TL_DEVICE auto operator()(I... i) const {
    static_assert(sizeof...(I) == rank, "as many indices as the tensor has dimensions");
    constexpr unsigned kept = bits_of<std::is_same<I, All>::value...>();
    constexpr int n = (packet_size<I> + ...), c = (repeats<I> * ...);
    const int at[rank] = {first_of_vector(i)...};
    if constexpr (kept != 0)
      return view<kept>(at);
    else if constexpr (c > 1)
      return repeated<c>(value(packet<n / c>(at)));
    else if constexpr (n > 0)
      return packet<n>(at);
    else if constexpr (std::is_const<T_>::value)
      return Element<const T>{address(at), inside(at)}.load();
    else
      return Element<T>{address(at), inside(at)};
  }

  // n elements along the last dimension; if `wanted` is false they are out of bounds at any index.
  template <int n> TL_DEVICE auto packet(const int (&at)[rank], bool wanted = true) const {
    constexpr int width = access_width<T, n>(alignment == 0 ? 16 : alignment);
    constexpr bool whole = whole_rows && width == bytes_of<T>(n);
    const Pointer<T_> p = address(at);
    bool rows_inside = wanted;
    TL_UNROLL
    for (int d = 0; d < last; ++d) rows_inside = rows_inside && inside(d, at[d]);
    // Single elements may have a stride.
    const bool vector = width > bytes_of<T>(1) && (alignment != 0 || aligned(at, width));
    using Elements = InGlobal<T_, n, width, is_predicated(last), whole, Start::evict>;
    const Elements elements{p, stride[last], at[last], extent[last], rows_inside, vector};
    if constexpr (std::is_const<T_>::value)
      return elements.load();
    else
      return Packet<Elements>{elements};
  }

  TL_DEVICE bool inside(const int (&at)[rank]) const {
    bool result = true;
    TL_UNROLL
    for (int d = 0; d < rank; ++d) result = result && inside(d, at[d]);
    return result;
  }

  // Keeps the dimensions whose bit is set in `kept`, and fixes the others. If a fixed index is out of bounds, the view
  // is empty.
  template <unsigned kept> TL_DEVICE auto view(const int (&at)[rank]) const {
    constexpr bool may_be_empty = (predicated_dims & ~kept) != 0, keeps_last = kept >> last & 1;
    constexpr unsigned kept_ragged = compacted(kept) | (may_be_empty ? 1 : 0);
    using RowsStart = std::conditional_t<keeps_last, Start, StartOf<bytes_of<T>(1)>>;
    // The run-time test needs the stride of the rows, to know whether a vector size divides a row.
    constexpr bool keeps_distance = alignment != 0 || (last > 0 && (kept >> (last - 1) & 1));
    Tensor<T_, RowsStart, count_bits(kept), kept_ragged, whole_rows && keeps_last && keeps_distance> view;
    view.data = data;
    bool empty = false;
    int to = 0;
    TL_UNROLL
    for (int d = 0; d < rank; ++d) {
      if (kept >> d & 1) {
        view.stride[to] = stride[d], view.extent[to] = extent[d];
        ++to;
      } else {
        view.data += int64_t(uint64_t(int64_t(at[d])) * uint64_t(stride[d]));
        empty = empty || !inside(d, at[d]);
      }
    }
    if (empty) view.extent[0] = 0;
    return view;
  }
  TL_BOTH static constexpr unsigned compacted(unsigned kept) {
    unsigned result = 0;
    int to = 0;
    for (int d = 0; d < rank; ++d)
      if (kept >> d & 1) result |= (is_predicated(d) ? 1u : 0u) << to++;
    return result;
  }

  // The tile that starts at these indices; the other operand defines its extents.
  template <class... I> TL_DEVICE Place<Tensor> tile(I... i) const {
    static_assert(sizeof...(I) == rank, "as many offsets as the view has dimensions");
    return {*this, {int_index(i)...}};
  }
};

// The same view, cut off at index `end` of a dimension: larger indices are out of bounds. Called by: any thread.
template <int dim, class T, class Start, int rank, unsigned predicated_dims, bool whole_rows>
TL_DEVICE auto up_to(const Tensor<T, Start, rank, predicated_dims, whole_rows>& tensor, int end) {
  Tensor<T, Start, rank, predicated_dims | 1u << dim, whole_rows && dim != rank - 1> view;
  view.data = tensor.data;
  TL_UNROLL
  for (int d = 0; d < rank; ++d) view.stride[d] = tensor.stride[d], view.extent[d] = tensor.extent[d];
  view.extent[dim] = end < 0 ? 0 : end < tensor.extent[dim] ? end : tensor.extent[dim];
  return view;
}

// A tile of a tensor, with a start but no extents. Coordinates are relative to the start.
template <class View> struct Place {
  using type = typename View::type;
  using T = typename View::T;
  static constexpr int rank = View::rank, alignment = View::alignment;
  static constexpr bool guarded = View::guarded;
  View view;
  int offset[rank];

  TL_DEVICE bool aligned(int bytes) const { return view.aligned(offset, bytes); }
  template <int bytes> TL_DEVICE auto with_row_start() const {
    Place<decltype(view.template with_row_start<bytes>())> place{view.template with_row_start<bytes>(), {}};
    TL_UNROLL
    for (int d = 0; d < rank; ++d) place.offset[d] = offset[d];
    return place;
  }
  template <Evict policy> TL_DEVICE auto evicting() const {
    Place<decltype(view.template evicting<policy>())> place{view.template evicting<policy>(), {}};
    TL_UNROLL
    for (int d = 0; d < rank; ++d) place.offset[d] = offset[d];
    return place;
  }
  TL_DEVICE auto unguarded() const {
    Place<decltype(view.unguarded())> place{view.unguarded(), {}};
    TL_UNROLL
    for (int d = 0; d < rank; ++d) place.offset[d] = offset[d];
    return place;
  }
  // Whether `extents` elements along each dimension, from the start of the tile on, are in bounds.
  TL_DEVICE bool holds(const int (&extents)[rank]) const {
    bool result = true;
    TL_UNROLL
    for (int d = 0; d < rank; ++d)
      if (View::is_predicated(d)) result = result && offset[d] >= 0 && offset[d] <= view.extent[d] - extents[d];
    return result;
  }
  template <class... I> TL_DEVICE auto address(I... i) const {
    int at[rank] = {int_index(i)...};
    TL_UNROLL
    for (int d = 0; d < rank; ++d) at[d] = View::is_predicated(d) ? wrapping_add(offset[d], at[d]) : offset[d] + at[d];
    return view.address(at);
  }
  template <int n, class... I> TL_DEVICE auto packet(I... i) const { return packet_if<n>(true, i...); }
  template <int n, class... I> TL_DEVICE auto packet_if(bool wanted, I... i) const {
    int at[rank] = {int_index(i)...};
    TL_UNROLL
    for (int d = 0; d < rank; ++d) at[d] = View::is_predicated(d) ? wrapping_add(offset[d], at[d]) : offset[d] + at[d];
    return view.template packet<n>(at, wanted);
  }
};

// tl::copy from such a tile loads with the eviction priority evict_first, for data that is read once, or evict_last,
// for data that is soon read again.
template <class View> TL_DEVICE auto evict_first(const Place<View>& place) {
  return place.template evicting<Evict::first>();
}
template <class View> TL_DEVICE auto evict_last(const Place<View>& place) {
  return place.template evicting<Evict::last>();
}

template <int n> struct Strides {
  int64_t stride[n];
};
// The distance of consecutive elements along each dimension, in elements.
template <class... S> TL_BOTH Strides<sizeof...(S)> strides(S... stride) { return {{static_cast<int64_t>(stride)...}}; }

// A contiguous row-major tensor. An extent is a number if tiles divide it, or tl::predicated(n).
template <class Start, class T, class... Extents> TL_DEVICE auto tensor(T* data, Extents... extents) {
  constexpr int rank = sizeof...(Extents);
  Tensor<ElementIn<T>, Start, rank, bits_of<std::is_same<Extents, Predicated>::value...>(), (rank > 1)> view{
      first_element(data), {}, {extent_of(extents)...}};
  int64_t stride = 1;
  TL_UNROLL
  for (int d = rank - 1; d >= 0; --d) {
    view.stride[d] = stride;
    stride = int64_t(uint64_t(stride) * uint64_t(view.extent[d]));  // wraps in tensors without elements only
  }
  return view;
}

// A tensor with explicit strides.
template <class Start, class T, int rank, class... Extents>
TL_DEVICE auto strided_tensor(T* data, Strides<rank> strides, Extents... extents) {
  static_assert(sizeof...(Extents) == rank, "one stride per extent");
  Tensor<ElementIn<T>, Start, rank, bits_of<std::is_same<Extents, Predicated>::value...>(), false> view{
      first_element(data), {}, {extent_of(extents)...}};
  TL_UNROLL
  for (int d = 0; d < rank; ++d) view.stride[d] = strides.stride[d];
  return view;
}

}  // namespace tl
