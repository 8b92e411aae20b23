// Includes for kernels in CuTe's style: CuTe, tl's launchers, and functions that CuTe lacks: predicated tile copies, a
// tile MMA with ldmatrix operands, accumulators as rows and columns, row reductions, packed conversion. C++17, CuTe's
// public names only.
#pragma once
#include "tl.h"

#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cute/arch/cluster_sm90.hpp>
#include <cutlass/numeric_conversion.h>

namespace tl {

// Operations of a Copy_Atom with a predicate, zeros where it is false: loads of 16 bytes from global memory that L1 and
// L2 evict first or last, and cp.async of 16 bytes that L2 evicts first.
template <bool first> struct LoadEvict {
  CUTE_DEVICE static void copy(const uint4& from, uint4& to, bool wanted) {
    to = first ? load16_evict_first(&from, wanted) : load16_evict_last(&from, wanted);
  }
};
using LoadEvictFirst = LoadEvict<true>;
using LoadEvictLast = LoadEvict<false>;
struct CpAsyncEvictFirst {
  CUTE_DEVICE static void copy(const uint4& from, uint4& to, bool wanted) {
    cp_async_once<sizeof(uint4)>(&to, &from, wanted ? sizeof(uint4) : 0);
  }
};

// Their layouts, and their predicate.
template <class Operation> struct PredicatedTraits : cute::Copy_Traits<cute::UniversalCopy<uint4>> {
  bool wanted = true;

  CUTE_DEVICE cute::Copy_Traits<Operation> with(bool wanted) const {
    cute::Copy_Traits<Operation> traits;
    traits.wanted = wanted;
    return traits;
  }
  template <class From, class FromLayout, class To, class ToLayout>
  CUTE_DEVICE friend void copy_unpack(const cute::Copy_Traits<Operation>& traits,
                                      const cute::Tensor<From, FromLayout>& from, cute::Tensor<To, ToLayout>& to) {
    Operation::copy(cute::recast<const uint4>(from)(0), cute::recast<uint4>(to)(0), traits.wanted);
  }
};

}  // namespace tl

template <bool first> struct cute::Copy_Traits<tl::LoadEvict<first>> : tl::PredicatedTraits<tl::LoadEvict<first>> {};
template <> struct cute::Copy_Traits<tl::CpAsyncEvictFirst> : tl::PredicatedTraits<tl::CpAsyncEvictFirst> {};

namespace tl {

// ---- predicated copies ----------------------------------------------------------------------------------------------
// Partitions have the modes ((one instruction, further instructions), Rest...); `at` holds the coordinates of the same
// elements.

// Whether the copy atom is predicated and writes zeros itself (cp.async with zfill).
template <class Traits, class = void> constexpr bool takes_predicate = false;
template <class Traits>
constexpr bool takes_predicate<Traits, std::void_t<decltype(std::declval<const Traits&>().with(true))>> = true;

// A tensor's extents, one per dimension: a swizzled tile's own shape is hierarchical.
template <class Tensor> CUTE_DEVICE auto extents(const Tensor& tensor) {
  return cute::product_each(cute::shape(tensor));
}

// Whether a coordinate is in bounds: one unsigned comparison per dimension, which also rejects negative coordinates.
template <class At, class Extent, size_t... dims>
CUTE_DEVICE bool inside(const At& at, const Extent& extent, std::index_sequence<dims...>) {
  return ((unsigned(int(cute::get<dims>(at))) < unsigned(int(cute::get<dims>(extent)))) && ...);
}
template <class At, class Extent> CUTE_DEVICE bool inside(const At& at, const Extent& extent) {
  return inside(at, extent, std::make_index_sequence<cute::rank_v<Extent>>());
}

// A partition as (elements of one instruction, instructions).
template <class Layout> CUTE_DEVICE auto modes_by_instruction(const Layout& l) {
  using namespace cute;
  if constexpr (is_composed_layout<Layout>::value)
    return composition(l.layout_a(), l.offset(), modes_by_instruction(l.layout_b()));
  else
    return make_layout(layout<0, 0>(l), make_layout(layout<0, 1>(l), take<1, decltype(rank(l))::value>(l)));
}
template <class Partition> CUTE_DEVICE auto by_instruction(Partition&& partition) {
  return cute::make_tensor(partition.data(), modes_by_instruction(partition.layout()));
}
// Calls visit(at, from, to) for each instruction; `at` are the coordinates of its elements.
template <class At, class From, class To, class Visit>
CUTE_DEVICE void each_instruction(const At& at, const From& from, To&& to, const Visit& visit) {
  using namespace cute;
  const auto at_i = by_instruction(at);
  const auto from_i = by_instruction(from);
  auto to_i = by_instruction(to);
  CUTE_UNROLL
  for (int i = 0; i < size<1>(at_i); ++i) visit(at_i(_, i), from_i(_, i), to_i(_, i));
}

// Whether all elements of one instruction are in bounds. Only a tensor of one dimension may end inside an instruction's
// vector: the rows of others are multiples of it.
template <class Extent> constexpr bool reaches_end = cute::rank_v<Extent> == 1;
template <class At, class Extent> CUTE_DEVICE bool is_whole(const At& at, const Extent& end) {
  return inside(at(cute::_0{}), end) && (!reaches_end<Extent> || inside(at(cute::size(at) - cute::_1{}), end));
}

// The tile of `shape` at the coordinate `start`.
template <class Tensor, class Shape, class Start>
CUTE_DEVICE auto tile_at(const Tensor& tensor, const Shape& shape, const Start& start) {
  return cute::local_tile(cute::domain_offset(start, tensor), shape, cute::repeat<cute::rank_v<Start>>(cute::_0{}));
}

// The end of the tile at `start`, clipped to the tensor: a partition may overhang its tile. Not negative, as `inside`
// compares without sign.
template <class Extent, class Start, class Shape>
CUTE_DEVICE auto end_of(const Extent& extent, const Start& start, const Shape& tile) {
  return cute::transform(extent, start, tile,
                         [](int end, int first, int size) { return max(0, min(end, saturating_add(first, size))); });
}

// Whether rows end, and the first of a tile at `start` begins, at multiples of n elements. The last stride is 1.
template <int n, class Tensor, class Start>
CUTE_DEVICE bool starts_at_multiples(const Tensor& tensor, const Start& start) {
  using namespace cute;
  constexpr int last = rank_v<Start> - 1;
  bool found = int(get<last>(shape(tensor))) % n == 0 && int(get<last>(start)) % n == 0;
  for_each(take<0, last>(stride(tensor)), [&](auto pitch) { found = found && int64_t(pitch) % n == 0; });
  return found && reinterpret_cast<uintptr_t>(raw_pointer_cast(tensor.data())) % (n * sizeof(*tensor.data())) == 0;
}

// A shared tile with its swizzle in the layout. TMA and wgmma need it in the pointer, but then compilers do not see
// that an element is in shared memory. Other tensors as they are.
template <class Tensor> CUTE_DEVICE decltype(auto) by_layout(const Tensor& tensor) {
  if constexpr (cute::is_smem<Tensor>::value)
    return cute::as_position_independent_swizzle_tensor(tensor);
  else
    return (tensor);
}

// This thread's slice of a TiledCopy or TiledMMA; in a block with more threads, slices repeat.
template <class Tiled> CUTE_DEVICE auto slice_of(const Tiled& tiled) {
  return tiled.get_slice(threadIdx.x % int(decltype(cute::size(tiled))::value));
}
// Whether this thread has one: without a test where all `threads` that call do; with 0 nothing is known of them.
template <int threads = 0, class Tiled> CUTE_DEVICE bool takes_part(const Tiled& tiled) {
  constexpr int own = decltype(cute::size(tiled))::value;
  return own == threads || threadIdx.x < unsigned(own);
}

// Converts a fragment to another element type: defined below.
template <class From, class To> CUTE_DEVICE void convert(const From& from, To&& to);
// Converts element by element.
template <class From, class To> CUTE_DEVICE void convert_each(const From& from, To&& to) {
  using Target = typename std::decay_t<To>::value_type;
  CUTE_UNROLL
  for (int i = 0; i < cute::size(to); ++i) to(i) = Target(from(i));
}

// An element's bits, zeros where it is not `wanted`. In a register of 32 bits the zeros are written before the load; in
// a register's half after it, which would wait for it.
template <class T> CUTE_DEVICE uint32_t bits_or_zero(const T& element, bool wanted) {
  uint32_t bits = 0;
  if (wanted) bits = reinterpret_cast<const cute::uint_bit_t<cute::sizeof_bits_v<T>>&>(element);
  return bits;
}
// Loads single elements, with zeros out of bounds, and stores each thread's neighbours by one access of 16 bytes. The
// partitions' first mode has the neighbours.
template <class At, class End, class From, class To>
CUTE_DEVICE void load_and_pack(const At& at, const End& end, const From& from, To&& to) {
  using namespace cute;
  using Source = typename From::value_type;
  using Target = typename std::decay_t<To>::value_type;
  const auto at_v = group_modes<1, rank_v<At>>(at);
  const auto from_v = group_modes<1, rank_v<From>>(from);
  auto to_v = group_modes<1, rank_v<std::decay_t<To>>>(to);
  constexpr int n = decltype(size<0>(at_v))::value;
  CUTE_UNROLL
  for (int v = 0; v < size<1>(at_v); ++v) {
    auto packed = make_tensor<Target>(Int<n>{});
    if constexpr (std::is_same<Source, Target>::value && sizeof(Source) < 4) {
      constexpr int in_word = 4 / sizeof(Source);
      auto words = recast<uint32_t>(packed);
      clear(words);
      CUTE_UNROLL
      for (int i = 0; i < n; ++i)
        words(i / in_word) |= bits_or_zero(from_v(i, v), inside(at_v(i, v), end))
                              << i % in_word * sizeof_bits_v<Source>;
    } else {
      CUTE_UNROLL
      for (int i = 0; i < n; ++i) packed(i) = Target(inside(at_v(i, v), end) ? Source(from_v(i, v)) : Source(0));
    }
    copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, packed, to_v(_, v));
  }
}

// Where a tensor may end: between the elements of two instructions, as rows do that are multiples of a vector, or
// within those of one, as tensors of one dimension may.
enum class Ends { BETWEEN, WITHIN };

// Global to shared memory: `to` = the tile of `from` at `start`, with zeros out of bounds; asynchronous (cp.async) if
// the atom is, but for the elements of an instruction in which the tensor ends. Called by: all threads of the block, or
// the first `threads`, if that is not 0.
template <int threads = 0, Ends ends = Ends::BETWEEN, class TiledCopy, class From, class Start, class To>
CUTE_DEVICE void copy_tile(const TiledCopy& tiled, const From& from, const Start& start, To&& to) {
  using namespace cute;
  using Source = typename From::value_type;
  using Target = typename std::decay_t<To>::value_type;
  if (!takes_part<threads>(tiled)) return;
  const auto slice = slice_of(tiled);
  const auto tile = extents(to);
  const auto at = slice.partition_S(tile_at(make_identity_tensor(extents(from)), tile, start));
  const auto parts = slice.partition_S(tile_at(from, tile, start));
  auto own = slice.partition_D(by_layout(to));
  constexpr bool by_elements = decltype(size<0, 0>(at))::value == 1 && decltype(size<0, 1>(at))::value > 1;
  if constexpr (by_elements) return load_and_pack(at, extents(from), parts, own);
  each_instruction(at, parts, own, [&](const auto& at, const auto& part, auto&& into) {
    const bool is_inside = inside(at(_0{}), extents(from));
    if (ends == Ends::WITHIN && is_inside && !is_whole(at, extents(from))) {
      CUTE_UNROLL
      for (int i = 0; i < size(into); ++i) into(i) = Target(inside(at(i), extents(from)) ? Source(part(i)) : Source(0));
    } else if constexpr (takes_predicate<typename TiledCopy::Traits>) {
      copy(tiled.with(is_inside), part, into);
    } else if (!is_inside) {
      clear(into);
    } else if constexpr (std::is_same<Source, Target>::value) {
      copy(tiled, part, into);
    } else {
      auto loaded = make_fragment_like(part);
      copy(tiled, part, loaded);
      convert_each(loaded, into);
    }
  });
}

// The same of data that this block reads `once`: L2 evicts what cp.async of 16 bytes reads before data that other
// blocks read again, for tensors of a size that spares_l2. Has two loops, because a cache policy selected at run time
// costs more than no policy.
template <class Tiled> CUTE_DEVICE auto evicting_first(const Tiled& tiled) { return tiled; }
template <class T, class Threads, class Tile>
CUTE_DEVICE auto evicting_first(
    const cute::TiledCopy<cute::Copy_Atom<cute::SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<cute::uint128_t>, T>, Threads, Tile>&) {
  return cute::TiledCopy<cute::Copy_Atom<CpAsyncEvictFirst, T>, Threads, Tile>{};
}
template <int threads = 0, Ends ends = Ends::BETWEEN, class TiledCopy, class From, class Start, class To>
CUTE_DEVICE void copy_tile_once(const TiledCopy& tiled, const From& from, const Start& start, To&& to,
                                bool once = true) {
  using Once = decltype(evicting_first(tiled));
  const int64_t rows = cute::size<0>(from), pitch = cute::stride<0>(from);
  if (!std::is_same<Once, TiledCopy>::value && once && spares_l2(rows * pitch * int64_t(sizeof(*from.data()))))
    copy_tile<threads, ends>(Once{}, from, start, to);
  else
    copy_tile<threads, ends>(tiled, from, start, to);
}

// One instruction's elements, with zeros out of bounds.
template <class TiledCopy, class At, class End, class From, class To>
CUTE_DEVICE void load_or_zero(const TiledCopy& tiled, const At& at, const End& end, const From& from, To&& to) {
  using T = typename From::value_type;
  if constexpr (takes_predicate<typename TiledCopy::Traits> && !reaches_end<End>) {
    copy(tiled.with(is_whole(at, end)), from, to);
  } else if (is_whole(at, end)) {
    copy(tiled, from, to);
  } else if constexpr (reaches_end<End>) {
    CUTE_UNROLL
    for (int i = 0; i < cute::size(to); ++i) to(i) = inside(at(i), end) ? from(i) : T(0);
  } else {  // by one store, as it is loaded: else the compiler merges loaded elements with zeros one by one
    clear(cute::recast<cute::uint_bit_t<cute::sizeof_bits_v<T>* decltype(cute::size(to))::value>>(to));
  }
}
// The same in the other direction: out-of-bounds elements are not written.
template <class TiledCopy, class At, class End, class From, class To>
CUTE_DEVICE void store_inside(const TiledCopy& tiled, const At& at, const End& end, const From& from, To&& to) {
  if (is_whole(at, end)) {
    copy(tiled, from, to);
  } else if constexpr (reaches_end<End>) {
    CUTE_UNROLL
    for (int i = 0; i < cute::size(from); ++i)
      if (inside(at(i), end)) to(i) = from(i);
  }
}

// Memory to registers: loads the tile of `shape` of `from` at `start`, with zeros out of bounds. `to` is the fragment
// that `tiled` partitions, or an accumulator of the TiledMMA from which `tiled` was made. Called by: all threads of the
// block.
template <class TiledCopy, class From, class Start, class Shape, class To>
CUTE_DEVICE void load_tile(const TiledCopy& tiled, const From& from, const Start& start, const Shape& tile, To& to) {
  using namespace cute;
  using Source = typename From::value_type;
  if constexpr (!std::is_same<Source, typename To::value_type>::value) {
    auto loaded = make_tensor<Source>(shape(to));
    load_tile(tiled, from, start, tile, loaded);
    convert(loaded, to);
  } else {
    const auto slice = slice_of(tiled);
    const auto at = slice.partition_S(tile_at(make_identity_tensor(extents(from)), tile, start));
    const auto parts = slice.partition_S(tile_at(by_layout(from), tile, start));
    const auto end = end_of(extents(from), start, tile);
    each_instruction(at, parts, slice.retile_D(to),
                     [&](const auto& at, const auto& part, auto&& into) { load_or_zero(tiled, at, end, part, into); });
  }
}
// One vector of such a tile, of which the thread has several: its elements v to v + n - 1.
template <int n, class TiledCopy, class From, class Start, class Shape>
CUTE_DEVICE auto load_vector(const TiledCopy& tiled, const From& from, const Start& start, const Shape& tile, int v) {
  using namespace cute;
  const auto slice = slice_of(tiled);
  const auto at = by_instruction(slice.partition_S(tile_at(make_identity_tensor(extents(from)), tile, start)));
  const auto parts = by_instruction(slice.partition_S(tile_at(by_layout(from), tile, start)));
  const auto end = end_of(extents(from), start, tile);
  constexpr int each = decltype(size<0>(at))::value;  // of an instruction
  auto vector = make_tensor<typename From::value_type>(make_shape(Int<each>{}, Int<n / each>{}));
  CUTE_UNROLL
  for (int i = 0; i < n / each; ++i)
    load_or_zero(tiled, at(_, v / each + i), end, parts(_, v / each + i), vector(_, i));
  return vector;
}

// Registers to memory: stores a fragment, as for load_tile, to the tile of `shape` of `to` at `start`; out-of-bounds
// elements are not written. Called by: all threads of the block.
template <class TiledCopy, class From, class To, class Start, class Shape>
CUTE_DEVICE void store_tile(const TiledCopy& tiled, const From& from, const To& to, const Start& start,
                            const Shape& tile) {
  using namespace cute;
  if (!takes_part(tiled)) return;
  const auto slice = slice_of(tiled);
  const auto at = slice.partition_D(tile_at(make_identity_tensor(extents(to)), tile, start));
  auto parts = slice.partition_D(tile_at(by_layout(to), tile, start));
  const auto end = end_of(extents(to), start, tile);
  each_instruction(at, slice.retile_S(from), parts,
                   [&](const auto& at, const auto& part, auto&& into) { store_inside(tiled, at, end, part, into); });
}
// One vector of such a tile, of which the thread has several: its elements v to v + n - 1.
template <int n, class TiledCopy, class From, class To, class Start, class Shape>
CUTE_DEVICE void store_vector(const TiledCopy& tiled, const From& from, const To& to, const Start& start,
                              const Shape& tile, int v) {
  using namespace cute;
  if (!takes_part(tiled)) return;
  const auto slice = slice_of(tiled);
  const auto at = by_instruction(slice.partition_D(tile_at(make_identity_tensor(extents(to)), tile, start)));
  auto parts = by_instruction(slice.partition_D(tile_at(by_layout(to), tile, start)));
  const auto end = end_of(extents(to), start, tile);
  constexpr int each = decltype(size<0>(at))::value;  // of an instruction
  const auto vector = make_tensor(from.data(), make_layout(make_shape(Int<each>{}, Int<n / each>{})));
  CUTE_UNROLL
  for (int i = 0; i < n / each; ++i)
    store_inside(tiled, at(_, v / each + i), end, vector(_, i), parts(_, v / each + i));
}

// Shared memory to that of another block of the cluster, `rank`: copies `shape` elements of `from` at `from_start` to
// those of `to` at `to_start` there. Contains no barrier: a cluster barrier must precede it, after that block's last
// access to `to`, and another must follow before that block reads it. Called by: all threads of the block.
template <class TiledCopy, class From, class FromStart, class To, class ToStart, class Shape>
CUTE_DEVICE void copy_to_block(const TiledCopy& tiled, int rank, const From& from, const FromStart& from_start,
                               const To& to, const ToStart& to_start, const Shape& tile) {
  using namespace cute;
  if (!takes_part(tiled)) return;
  const auto own = by_layout(to);
  const auto there = make_tensor(&in_block(*raw_pointer_cast(own.data()), rank), own.layout());
  const auto slice = slice_of(tiled);
  auto into = slice.partition_D(tile_at(there, tile, to_start));
  copy(tiled, slice.partition_S(tile_at(by_layout(from), tile, from_start)), into);
}

// Adds neighbours to as many elements of global memory, atomically each; from sm_90 two or four floats by one
// instruction.
template <int n, class T> CUTE_DEVICE void atomic_add_vector(T* to, const T* values) {
  if constexpr (std::is_same<T, float>::value && n == 4) {
    atomic_add_4(to, *reinterpret_cast<const uint4*>(values));
  } else if constexpr (std::is_same<T, float>::value && n == 2) {
    atomic_add_2(to, *reinterpret_cast<const uint2*>(values));
  } else {
    CUTE_UNROLL
    for (int i = 0; i < n; ++i) atomicAdd(to + i, values[i]);
  }
}

// Registers to global memory: adds a fragment to the tile of `shape` of `to` at `start`, atomically, n neighbours of a
// row together; `at` are the coordinates of its elements in the tile. Out-of-bounds elements are not updated.
// Preconditions: a thread's elements are groups of n neighbours, each in bounds or out of bounds as a whole, and start
// at multiples of n elements.
template <int n = 1, class From, class At, class To, class Start, class Shape>
CUTE_DEVICE void add_tile(const From& from, const At& at, To&& to, const Start& start, const Shape& tile) {
  using namespace cute;
  CUTE_UNROLL
  for (int i = 0; i < size(from); i += n) {
    const auto coordinate = transform(start, at(i), [](int first, int offset) { return wrapping_add(first, offset); });
    if (inside(at(i), tile) && inside(coordinate, extents(to))) atomic_add_vector<n>(&to(coordinate), &from(i));
  }
}
// The same, where it is known at run time only whether rows start at multiples of n elements.
template <int n, class From, class At, class To, class Start, class Shape>
CUTE_DEVICE void add_tile_by_rows(const From& from, const At& at, To&& to, const Start& start, const Shape& tile) {
  if (starts_at_multiples<n>(to, start))
    add_tile<n>(from, at, to, start, tile);
  else
    add_tile(from, at, to, start, tile);
}

// Shared to global memory: adds the tile of `from` to that of `to` at `start`, atomically. Out-of-bounds elements are
// not updated. Called by: all threads of the block.
template <class TiledCopy, class From, class To, class Start>
CUTE_DEVICE void add_tile(const TiledCopy& tiled, const From& from, To&& to, const Start& start) {
  using namespace cute;
  if (!takes_part(tiled)) return;
  const auto slice = slice_of(tiled);
  const auto at = slice.partition_D(tile_at(make_identity_tensor(extents(to)), extents(from), start));
  auto parts = slice.partition_D(tile_at(to, extents(from), start));
  const auto own = slice.partition_S(by_layout(from));
  CUTE_UNROLL
  for (int i = 0; i < size(own); ++i)
    if (inside(at(i), extents(to))) atomicAdd(&parts(i), own(i));
}

// Shared memory: each element of the tile = `value`. Called by: all threads of the block.
template <class Tile, class T> CUTE_DEVICE void fill_tile(Tile&& tile, const T& value) {
  auto elements = by_layout(tile);
  for (int i = threadIdx.x; i < cute::size(tile); i += blockDim.x) elements(i) = value;
}

// Shared to global memory: the tile of `to` at `start` = `from`; out-of-bounds elements are not written. Called by: all
// threads of the block.
template <class TiledCopy, class From, class To, class Start>
CUTE_DEVICE void store_tile(const TiledCopy& tiled, const From& from, const To& to, const Start& start) {
  using namespace cute;
  if (!takes_part(tiled)) return;
  const auto slice = slice_of(tiled);
  const auto tile = extents(from);
  const auto at = slice.partition_D(tile_at(make_identity_tensor(extents(to)), tile, start));
  auto parts = slice.partition_D(tile_at(to, tile, start));
  each_instruction(at, slice.partition_S(by_layout(from)), parts, [&](const auto& at, const auto& part, auto&& into) {
    store_inside(tiled, at, extents(to), part, into);
  });
}

// A tensor clipped to `end` along one dimension.
template <int dim, class Tensor> CUTE_DEVICE auto up_to(const Tensor& tensor, int end) {
  const auto shape =
      cute::replace<dim>(cute::shape(tensor), cute::max(0, cute::min(end, int(cute::get<dim>(cute::shape(tensor))))));
  return cute::make_tensor(tensor.data(), cute::make_layout(shape, cute::stride(tensor)));
}

// tensor(at...); empty, so that all of its elements are out of bounds, if one of the fixed indices is out of bounds.
CUTE_DEVICE bool is_fixed_inside(int at, int extent) { return unsigned(at) < unsigned(extent); }
CUTE_DEVICE bool is_fixed_inside(cute::Underscore, int) { return true; }
template <class Tensor, class... At, size_t... dims>
CUTE_DEVICE bool fixed_inside(const Tensor& tensor, std::index_sequence<dims...>, const At&... at) {
  return (is_fixed_inside(at, cute::size<dims>(tensor)) && ...);
}
template <class Tensor, class... At> CUTE_DEVICE auto slice_or_empty(const Tensor& tensor, const At&... at) {
  const bool is_inside = fixed_inside(tensor, std::make_index_sequence<sizeof...(At)>(), at...);
  const auto slice = tensor(at...);
  const auto shape = cute::transform(cute::shape(slice), [=](int extent) { return is_inside ? extent : 0; });
  return cute::make_tensor(slice.data(), cute::make_layout(shape, cute::stride(slice)));
}

// One element of a tensor; zero out of bounds. Its address is computed outside of the branch, so that loops hoist it.
template <class Tensor, class... Indices> CUTE_DEVICE auto value_at(const Tensor& tensor, const Indices&... at) {
  using Element = typename Tensor::value_type;
  const auto coordinate = cute::make_coord(int(at)...);
  const auto element = tensor.data() + tensor.layout()(coordinate);
  return inside(coordinate, cute::shape(tensor)) ? Element(*element) : Element(0);
}

// `n` consecutive elements of a tensor, by one load: at(...) are the indices of the first.
template <int n, class Tensor, class... Indices>
CUTE_DEVICE auto vector_at(const Tensor& tensor, const Indices&... at) {
  using Vector = cutlass::AlignedArray<std::remove_const_t<typename Tensor::value_type>, n>;
  return *reinterpret_cast<const Vector*>(&tensor(at...));
}

// This thread's rows (kept 0) or columns (kept 1) of a tile, from a tensor of one dimension: to(i) = from(start + row);
// zero out of bounds. `at` is the rowcol view of the coordinates in the tile. n neighbours are loaded together.
// Precondition for n > 1: the rows come in neighbours that start at multiples of n, all in bounds or none; those of a
// shared tile are all in bounds.
template <int kept, int n = 1, class From, class Start, class At, class To>
CUTE_DEVICE void load_values(const From& from, const Start& start, const At& at, To& to) {
  using Target = typename To::value_type;
  CUTE_UNROLL
  for (int i = 0; i < cute::size(to); i += n) {
    const int first = int(start) + int(cute::get<kept>(kept == 0 ? at(i, 0) : at(0, i)));
    if constexpr (n == 1) {
      to(i) = Target(value_at(from, first));
    } else {
      auto values = cute::make_tensor<std::remove_const_t<typename From::value_type>>(cute::Int<n>{});
      auto& vector = *reinterpret_cast<decltype(vector_at<n>(from, first))*>(&values(0));
      vector = {};
      if (cute::is_smem<From>::value || inside(cute::make_coord(first), cute::shape(from)))
        vector = vector_at<n>(from, first);
      convert(values, cute::make_tensor(&to(i), cute::Layout<cute::Int<n>>{}));
    }
  }
}

// An integer from -512 to 511 as half_t, exact, without the conversion unit: it is added to the bits of 1536.
CUTE_DEVICE cutlass::half_t exact_half(int x) {
  return cutlass::half_t::bitcast(uint16_t(0x6600 + x)) - cutlass::half_t(1536.0f);
}

// n consecutive elements of a row, as an array, 16 bytes at a time: `first` is a multiple of as many elements.
template <int n, class Row> CUTE_DEVICE auto elements_at(const Row& row, int first) {
  using T = std::remove_const_t<typename Row::value_type>;
  constexpr int each = 16 / sizeof(T);
  static_assert(n % each == 0, "whole loads of 16 bytes");
  cutlass::Array<T, n> elements;
  CUTE_UNROLL
  for (int i = 0; i < n; i += each)
    *reinterpret_cast<uint4*>(elements.data() + i) = *reinterpret_cast<const uint4*>(&row(first + i));
  return elements;
}

// n numbers of 4 bits, the lower half of each byte first, as half_t, less `less`: exact, 8 at a time and without the
// conversion unit. at(...) are the indices of the first byte. Preconditions: the bytes are consecutive and start at a
// multiple of 4, or they are 4 apart in the same 16 bytes; 0 <= less <= 256.
template <int n, int apart = 1, class Tensor, class... Indices>
CUTE_DEVICE auto unpack_uint4(int less, const Tensor& bytes, const Indices&... at) {
  static_assert(n % 8 == 0 && (apart == 1 || (apart == 4 && n == 8)), "whole words of 4-bit numbers");
  cutlass::Array<uint32_t, n / 8> words;
  const auto* const first = &bytes(at...);
  if constexpr (apart == 1) {
    words = *reinterpret_cast<const cutlass::Array<uint32_t, n / 8>*>(first);
  } else {  // one load of 16 bytes: each word has one of them, at the same place
    const unsigned place = static_cast<unsigned>(reinterpret_cast<uintptr_t>(first)) % 16, selector = place * 17 + 64;
    const uint4 chunk = *reinterpret_cast<const uint4*>(first - place);
    const uint32_t lower = __byte_perm(chunk.x, chunk.y, selector), upper = __byte_perm(chunk.z, chunk.w, selector);
    words[0] = __byte_perm(lower, upper, 0x5410);
  }
  cutlass::Array<cutlass::half_t, n> numbers;
  CUTE_UNROLL
  for (int w = 0; w < n / 8; ++w) reinterpret_cast<Vec<uint32_t, 4>*>(&numbers)[w] = nibbles_as_halves(words[w], less);
  return numbers;
}

// n sums of a fragment, from element v on, += the dots of the four 2-bit numbers of each byte of `packed`, less
// `less` each, and elements first to first + 4 n - 1 of an int8 row, four to a byte: four terms per instruction.
// dp4a_total adds all of them to the first sum. Preconditions: those of elements_at; n % 4 == 0.
template <int n, class Sums, class Packed, class Row, class Dot>
CUTE_DEVICE void add_dots(Sums& sums, int v, const Packed& packed, const Row& row, int first, const Dot& dot) {
  const auto elements = elements_at<4 * n>(row, first);
  auto& sum = *reinterpret_cast<Vec<int, n>*>(&sums(v));
  sum = dot(Quarters<n>{*reinterpret_cast<const Vec<uint8_t, n>*>(&packed(v))},
            Quads<n>{reinterpret_cast<const Vec<uint32_t, n>&>(elements)}, sum);
}
template <int n, class Sums, class Packed, class Row>
CUTE_DEVICE void dp4a(Sums& sums, int v, const Packed& packed, int less, const Row& row, int first) {
  add_dots<n>(sums, v, packed, row, first,
              [=](const auto& x, const auto& y, const auto& sum) { return dp4a(x - less, y, sum); });
}
template <int n, class Sums, class Packed, class Row>
CUTE_DEVICE void dp4a_total(Sums& sums, int v, const Packed& packed, int less, const Row& row, int first) {
  add_dots<n>(sums, v, packed, row, first,
              [=](const auto& x, const auto& y, const auto& sum) { return dp4a_total(x - less, y, sum); });
}

// The same, consecutive, in the order 0, 4, 1, 5, 2, 6, 3, 7 of each eight, in which they are unpacked; and other
// elements in that order.
template <int n, class Tensor, class... Indices>
CUTE_DEVICE auto unpack_uint4_interleaved(int less, const Tensor& bytes, const Indices&... at) {
  static_assert(n % 8 == 0, "whole words of 4-bit numbers");
  const auto words = *reinterpret_cast<const cutlass::Array<uint32_t, n / 8>*>(&bytes(at...));
  cutlass::Array<cutlass::half_t, n> numbers;
  CUTE_UNROLL
  for (int w = 0; w < n / 8; ++w) reinterpret_cast<Vec<uint32_t, 4>*>(&numbers)[w] = nibbles_as_pairs(words[w], less);
  return numbers;
}
template <int n> CUTE_DEVICE auto interleaved(const cutlass::Array<cutlass::half_t, n>& elements) {
  const auto apart = put_apart(reinterpret_cast<const Vec<half, n>&>(elements));
  return reinterpret_cast<const cutlass::Array<cutlass::half_t, n>&>(apart);
}

// ---- fragments ------------------------------------------------------------------------------------------------------

// This thread's fragment of a tile of `shape` that a TiledCopy partitions: (V, M, N).
template <class T, class TiledCopy, class Shape>
CUTE_DEVICE auto partition_fragment(const TiledCopy& tiled, const Shape& tile) {
  return cute::make_tensor<T>(cute::shape(tiled.get_slice(0).partition_D(cute::make_identity_tensor(tile))));
}
// The coordinates of this thread's elements in a tile of `shape`: in a TiledCopy's partition, in a TiledMMA's C.
template <class... Types, class Shape>
CUTE_DEVICE auto coordinates(const cute::TiledCopy<Types...>& tiled, const Shape& tile) {
  return slice_of(tiled).partition_D(cute::make_identity_tensor(tile));
}
template <class... Types, class Shape>
CUTE_DEVICE auto coordinates(const cute::TiledMMA<Types...>& tiled, const Shape& tile) {
  return slice_of(tiled).partition_C(cute::make_identity_tensor(tile));
}

// A view of a fragment, or of its coordinates, as (rows, columns) of this thread.
//   an accumulator of mma.m16n8  ((2, 2), M, N): 2 neighbouring columns in each of 2 rows
//   an accumulator of wgmma      ((2, 2, N / 8), M, N): the same, N / 8 times
//   a partition by a TiledCopy   ((1, V), M, N): V neighbouring columns of a row; of more dimensions than two all but
//                                the last one count as rows
template <class Fragment> CUTE_DEVICE auto rowcol(Fragment&& fragment) {
  using namespace cute;
  const auto l = fragment.layout();
  constexpr int modes = decltype(rank<0>(l))::value, last = decltype(rank(l))::value - 1;
  static_assert(modes == 2 || modes == 3, "(V, M, N) with two or three modes of V");
  if constexpr (decltype(size<0, 0>(l))::value == 1)
    return make_tensor(fragment.data(), make_layout(take<1, last>(l), make_layout(layout<0, 1>(l), layout<last>(l))));
  else if constexpr (modes == 2)
    return make_tensor(fragment.data(), make_layout(make_layout(layout<0, 1>(l), layout<1>(l)),
                                                    make_layout(layout<0, 0>(l), layout<2>(l))));
  else
    return make_tensor(fragment.data(), make_layout(make_layout(layout<0, 1>(l), layout<1>(l)),
                                                    make_layout(layout<0, 0>(l), layout<0, 2>(l), layout<2>(l))));
}

// Elements v to v + n - 1 of a fragment, as an array.
template <int n, class Fragment> CUTE_DEVICE auto& array_at(Fragment& fragment, int v) {
  return *reinterpret_cast<cutlass::Array<typename Fragment::value_type, n>*>(&fragment(v));
}

// Columns c to c + n - 1 of row r of a rowcol view = an array of 16-bit elements; c is even.
template <int n, class Rowcol, class T>
CUTE_DEVICE void set_columns(Rowcol& view, int r, int c, const cutlass::Array<T, n>& values) {
  CUTE_UNROLL
  for (int i = 0; i < n; i += 2)
    reinterpret_cast<uint32_t&>(view(r, c + i)) = *reinterpret_cast<const uint32_t*>(values.data() + i);
}

// Converts a fragment to another element type, rounded to nearest even; from float to a 16-bit type, and from half_t
// and bfloat16_t to float, two elements per register: those of a 128-bit load would be shifted out of it one by one.
template <class From, class To> CUTE_DEVICE void convert(const From& from, To&& to) {
  using namespace cute;
  using Source = typename From::value_type;
  using Target = typename std::decay_t<To>::value_type;
  constexpr bool is_even = decltype(size(from))::value % 2 == 0;
  constexpr bool is_half = std::is_same<Source, half_t>::value || std::is_same<Source, bfloat16_t>::value;
  if constexpr (sizeof(Target) == 2 && std::is_same<Source, float>::value && is_even) {
    auto pairs = recast<uint32_t>(to);
    CUTE_UNROLL
    for (int i = 0; i < size(pairs); ++i) {
      const cutlass::Array<Source, 2> pair{from(2 * i), from(2 * i + 1)};
      const cutlass::Array<Target, 2> rounded = cutlass::NumericArrayConverter<Target, Source, 2>()(pair);
      pairs(i) = reinterpret_cast<const uint32_t&>(rounded);
    }
  } else if constexpr (is_half && std::is_same<Target, float>::value && is_even) {
    const auto pairs = recast<uint32_t>(from);
    CUTE_UNROLL
    for (int i = 0; i < size(pairs); ++i) {
      const auto pair = reinterpret_cast<const cutlass::Array<Source, 2>&>(pairs(i));
      const cutlass::Array<float, 2> exact = cutlass::NumericArrayConverter<float, Source, 2>()(pair);
      to(2 * i) = exact[0];
      to(2 * i + 1) = exact[1];
    }
  } else {
    convert_each(from, to);
  }
}
// The same to a new fragment.
template <class Target, class From> CUTE_DEVICE auto converted(const From& from) {
  auto to = cute::make_tensor_like<Target>(from);
  convert(from, to);
  return to;
}

// ---- reductions over rows and columns -------------------------------------------------------------------------------

// The threads that share a row: `lanes` of a warp, `lane_distance` threads apart, in each of `warps` groups that begin
// `warp_distance` threads apart.
template <int lanes_, int lane_distance_ = 1, int warps_ = 1, int warp_distance_ = 32> struct Sharing {
  static constexpr int lanes = lanes_, lane_distance = lane_distance_, warps = warps_, warp_distance = warp_distance_;
};

// The elements that are reduced: all, or those in bounds of a tile that the partition overhangs.
struct Everywhere {
  CUTE_DEVICE bool operator()(int, int) const { return true; }
};
template <class At, class Shape> CUTE_DEVICE auto within(const At& at, const Shape& tile) {
  return [=](int i, int j) { return inside(at(i, j), tile); };
}

// Whether sums are of half_t, whose even and odd elements are added by packed additions, and then to one another.
template <class Op, class From, class To, class Within>
constexpr bool adds_pairs =
    std::is_same<Op, ReduceSum>::value && std::is_same<typename From::value_type, cutlass::half_t>::value &&
    std::is_same<typename To::value_type, cutlass::half_t>::value && std::is_same<Within, Everywhere>::value &&
    decltype(cute::size<1>(std::declval<From>()))::value % 2 == 0;

// Reduces each row of `from`, a rowcol view: first the elements of this thread, then a butterfly over the lanes that
// share the row, all of which have the result. Called by: whole warps.
template <class Op, class Threads, class From, class To, class Within = Everywhere>
CUTE_DEVICE void reduce_rows(const From& from, To& to, const Within& takes_part = {}) {
  using T = typename To::value_type;
  CUTE_UNROLL
  for (int i = 0; i < cute::size<0>(from); ++i) {
    T value = Op::template identity<T>();
    if constexpr (adds_pairs<Op, From, To, Within>) {
      cutlass::Array<T, 2> sums, pair;
      CUTE_UNROLL
      for (int j = 0; j < cute::size<1>(from); j += 2) {
        pair[0] = from(i, j), pair[1] = from(i, j + 1);
        sums = j == 0 ? pair : sums + pair;
      }
      const auto both = bit_cast<Vec<half, 2>>(sums);  // whose upper half is read where it is, without a shift
      value = bit_cast<T>(half(both.at[0] + both.at[1]));
    } else {
      CUTE_UNROLL
      for (int j = 0; j < cute::size<1>(from); ++j)
        if (takes_part(i, j)) value = Op::combine(value, Op::of(T(from(i, j))));
    }
    CUTE_UNROLL
    for (int mask = 1; mask < Threads::lanes; mask *= 2)
      value = Op::combine(value, shuffle_xor(value, mask * Threads::lane_distance));
    to(i) = value;
  }
}

// The same for rows that several warps share: partial results are exchanged through the workspace. Dimension `dim` of
// the coordinates `at` is the row. Called by: all threads that share the workspace.
template <class Op, class Threads, int dim = 0, class From, class To, class T, int extent, int warps, int threads,
          bool ordered, class At, class Within = Everywhere>
CUTE_DEVICE void reduce_rows(const From& from, To& to, ReduceWorkspace<T, extent, warps, threads, ordered>& workspace,
                             const At& at, const Within& takes_part = {}) {
  reduce_rows<Op, Threads>(from, to, takes_part);
  const int part = threadIdx.x / Threads::warp_distance % warps;
  if constexpr (!ordered) sync_workspace<threads>();  // all reads of an earlier reduction are complete
  if (threadIdx.x / Threads::lane_distance % Threads::lanes == 0) {
    CUTE_UNROLL
    for (int i = 0; i < cute::size(to); ++i)
      if (const int row = cute::get<dim>(at(i, 0)); row < extent) workspace.part[part][row] = to(i);
  }
  sync_workspace<threads>();  // all parts are visible
  CUTE_UNROLL
  for (int i = 0; i < cute::size(to); ++i) {
    const int row = cute::min(int(cute::get<dim>(at(i, 0))), extent - 1);
    to(i) = workspace.part[0][row];
    CUTE_UNROLL
    for (int w = 1; w < warps; ++w) to(i) = Op::combine(to(i), workspace.part[w][row]);
  }
}

// Combines the reduction with the previous values of `to`.
template <class Op, class Threads, int... dim, class From, class To, class... More>
CUTE_DEVICE void accumulate_rows(const From& from, To& to, More&&... more) {
  const To before = to;
  reduce_rows<Op, Threads, dim...>(from, to, more...);
  CUTE_UNROLL
  for (int i = 0; i < cute::size(to); ++i) to(i) = Op::combine(before(i), to(i));
}

// Values of rows of which each thread has a part: combined over the lanes that share the rows, all of which have the
// result. Called by: whole warps.
template <class Op, class Threads, class Values> CUTE_DEVICE void allreduce_rows(Values& values) {
  CUTE_UNROLL
  for (int i = 0; i < cute::size(values); ++i) {
    CUTE_UNROLL
    for (int mask = 1; mask < Threads::lanes; mask *= 2)
      values(i) = Op::combine(values(i), shuffle_xor(values(i), mask * Threads::lane_distance));
  }
}

// Whether a value of any thread of the warp has changed: the same for all of its threads. Called by: whole warps.
template <class Before, class After> CUTE_DEVICE bool values_changed(const Before& before, const After& after) {
  bool own = false;
  CUTE_UNROLL
  for (int i = 0; i < cute::size(after); ++i) own |= before(i) != after(i);
  return __any_sync(0xffffffffu, own);
}

// A view of a fragment, or of its coordinates, as one row: reductions to one value.
template <class Fragment> CUTE_DEVICE auto one_row(Fragment&& fragment) {
  using namespace cute;
  return make_tensor(fragment.data(), make_layout(Layout<_1, _0>{}, fragment.layout()));
}

// The transpose of a rowcol view: reductions of columns.
template <class Fragment> CUTE_DEVICE auto colrow(Fragment&& fragment) {
  using namespace cute;
  const auto l = fragment.layout();
  return make_tensor(fragment.data(), make_layout(layout<1>(l), layout<0>(l)));
}

// ---- MMAs -----------------------------------------------------------------------------------------------------------

// Loads the operands of each step along K, `a` (M, K) and `b` (N, K), from shared memory by the copy atoms load_a and
// load_b, and calls multiply with the step's fragments (V, M) and (V, N). Called by: all threads of the MMA.
template <class Mma, class LoadA, class LoadB, class A, class B, class Multiply>
CUTE_DEVICE void each_step(const Mma& mma, const LoadA& load_a, const LoadB& load_b, const A& a, const B& b,
                           const Multiply& multiply) {
  using namespace cute;
  const auto slice = mma.get_slice(threadIdx.x);
  auto tCrA = slice.partition_fragment_A(a);  // (V, M, K)
  auto tCrB = slice.partition_fragment_B(b);  // (V, N, K)
  const auto copy_a = make_tiled_copy_A(load_a, mma);
  const auto copy_b = make_tiled_copy_B(load_b, mma);
  const auto slice_a = copy_a.get_slice(threadIdx.x);
  const auto slice_b = copy_b.get_slice(threadIdx.x);
  const auto tXsA = slice_a.partition_S(a);
  const auto tXsB = slice_b.partition_S(b);
  auto tXrA = slice_a.retile_D(tCrA);
  auto tXrB = slice_b.retile_D(tCrB);
  CUTE_UNROLL
  for (int k = 0; k < size<2>(tCrA); ++k) {
    copy(copy_a, tXsA(_, _, k), tXrA(_, _, k));
    copy(copy_b, tXsB(_, _, k), tXrB(_, _, k));
    multiply(tCrA(_, _, k), tCrB(_, _, k));
  }
}

// c += a @ b. `a` is (M, K) and `b` is (N, K), both in shared memory; load_a and load_b are copy atoms (ldmatrix).
// Called by: all threads of the MMA.
template <class Mma, class LoadA, class LoadB, class A, class B, class C>
CUTE_DEVICE void gemm(const Mma& mma, const LoadA& load_a, const LoadB& load_b, const A& a, const B& b, C& c) {
  each_step(mma, load_a, load_b, a, b,
            [&](const auto& step_a, const auto& step_b) { cute::gemm(mma, step_a, step_b, c); });
}

// The same with A in registers: `a` is an A operand fragment of the TiledMMA, (V, M, K).
template <class Mma, class LoadB, class A, class B, class C>
CUTE_DEVICE void gemm(const Mma& mma, const LoadB& load_b, const A& a, const B& b, C& c) {
  using namespace cute;
  auto tCrB = mma.get_slice(threadIdx.x).partition_fragment_B(b);  // (V, N, K)
  const auto copy_b = make_tiled_copy_B(load_b, mma);
  const auto slice_b = copy_b.get_slice(threadIdx.x);
  const auto tXsB = slice_b.partition_S(b);
  auto tXrB = slice_b.retile_D(tCrB);
  CUTE_UNROLL
  for (int k = 0; k < size<2>(a); ++k) {
    copy(copy_b, tXsB(_, _, k), tXrB(_, _, k));
    cute::gemm(mma, a(_, _, k), tCrB(_, _, k), c);
  }
}

// The 8-bit floats of one instruction's operand, 16-bit pairs, converted exactly: those of one half of K, where each
// lane's four neighbours become two pairs. This permutes k in the same way for A and B.
template <class T, class Pairs> CUTE_DEVICE auto half_of(const Pairs& pairs, int which) {
  using namespace cute;
  using Stored = std::conditional_t<std::is_same<T, float_e4m3_t>::value, float8_e4m3, float8_e5m2>;
  auto found = make_tensor_like<half_t>(pairs);
  const auto from = recast<const uint32_t>(pairs);
  auto to = recast<uint32_t>(found);
  constexpr int rows = decltype(size(from))::value / 2;  // of a lane
  CUTE_UNROLL
  for (int row = 0; row < rows; ++row) Stored::halves(from(row + rows * which), to(row), to(row + rows));
  return found;
}
// c += a @ b of 8-bit floats T, for targets that multiply these as half_t: two MMAs of half the operands each.
// `pairs_a` is (M, K / 2) and `pairs_b` is (N, K / 2), both in shared memory; load_a and load_b are copy atoms of
// half_t (ldmatrix of pairs). Each instruction's columns of b are loaded and converted right before they are
// multiplied: few registers hold them. Called by: all threads of the MMA.
template <class T, class Mma, class LoadA, class LoadB, class A, class B, class C>
CUTE_DEVICE void gemm_as_half(const Mma& mma, const LoadA& load_a, const LoadB& load_b, const A& pairs_a,
                              const B& pairs_b, C& c) {
  using namespace cute;
  const auto slice = mma.get_slice(threadIdx.x);
  auto tCrA = make_tensor<half_t>(replace<2>(shape(slice.partition_fragment_A(pairs_a)), _1{}));  // (V, M, 1)
  auto tCrB = make_tensor<half_t>(replace<2>(shape(slice.partition_fragment_B(pairs_b)), _1{}));  // (V, N, 1)
  const auto copy_a = make_tiled_copy_A(load_a, mma);
  const auto copy_b = make_tiled_copy_B(load_b, mma);
  const auto tXsA = copy_a.get_slice(threadIdx.x).partition_S(pairs_a);
  const auto tXsB = copy_b.get_slice(threadIdx.x).partition_S(pairs_b);
  auto tXrA = copy_a.get_slice(threadIdx.x).retile_D(tCrA);
  auto tXrB = copy_b.get_slice(threadIdx.x).retile_D(tCrB);
  auto to = by_instruction(tXrB(_, _, 0));
  constexpr int loads = decltype(size<1>(to))::value, each = decltype(size<1>(tCrB))::value / loads;
  CUTE_UNROLL
  for (int k = 0; k < size<2>(tXsA); ++k) {
    copy(copy_a, tXsA(_, _, k), tXrA(_, _, 0));
    const auto from = by_instruction(tXsB(_, _, k));
    CUTE_UNROLL
    for (int load = 0; load < loads; ++load) {
      copy(copy_b, from(_, load), to(_, load));
      CUTE_UNROLL
      for (int n = load * each; n < (load + 1) * each; ++n) {
        CUTE_UNROLL
        for (int which = 0; which < 2; ++which) {
          const auto half_b = half_of<T>(tCrB(_, n, 0), which);
          CUTE_UNROLL
          for (int m = 0; m < size<1>(c); ++m) cute::gemm(mma, half_of<T>(tCrA(_, m, 0), which), half_b, c(_, m, n));
        }
      }
    }
  }
}

// A view of an accumulator as the A operand of the next MMA: each lane holds the same elements, no shuffle.
//   mma.m16n8k16  ((2, 2), M, N)         -> ((2, 2, 2), M, N / 2)
//   wgmma         ((2, 2, N / 8), M, N)  -> ((2, 2, 2), M, (N / 16, N))
template <class Fragment> CUTE_DEVICE auto as_operand_A(const Fragment& accumulator) {
  using namespace cute;
  static_assert(sizeof(typename Fragment::value_type) == 2, "k16: operands of 16 bits");
  const auto l = accumulator.layout();
  if constexpr (decltype(rank<0>(l))::value == 2) {
    const auto n = logical_divide(layout<2>(l), _2{});  // (2, N / 2)
    return make_tensor(accumulator.data(), make_layout(make_layout(layout<0, 0>(l), layout<0, 1>(l), layout<0>(n)),
                                                       layout<1>(l), layout<1>(n)));
  } else {
    const auto n = logical_divide(layout<0, 2>(l), _2{});  // (2, N / 16)
    return make_tensor(accumulator.data(), make_layout(make_layout(layout<0, 0>(l), layout<0, 1>(l), layout<0>(n)),
                                                       layout<1>(l), make_layout(layout<1>(n), layout<2>(l))));
  }
}

// A view of a tile, or of a tensor, with its modes swapped: (N, K) of a B that is stored as (K, N).
template <class Tensor> CUTE_DEVICE auto swap_modes(const Tensor& tile) {
  using namespace cute;
  if constexpr (is_static<decltype(tile.layout())>::value) {
    const auto modes = make_layout(make_shape(size<1>(tile), size<0>(tile)), GenRowMajor{});
    return make_tensor(tile.data(), composition(tile.layout(), modes));
  } else if constexpr (is_composed_layout<std::decay_t<decltype(tile.layout())>>::value) {  // of a part of the tile
    const auto l = tile.layout();
    return make_tensor(tile.data(), composition(l.layout_a(), l.offset(), select<1, 0>(l.layout_b())));
  } else {
    return make_tensor(tile.data(), select<1, 0>(tile.layout()));
  }
}

}  // namespace tl
