// Includes for kernels in CuTe's style: CuTe, tl's launchers, and functions that CuTe lacks: predicated tile copies, a
// tile MMA with ldmatrix operands, packed conversion. C++17, CuTe's public names only.
#pragma once
#include "tl.h"

#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cutlass/numeric_conversion.h>

namespace tl {

// ---- predicated copies ----------------------------------------------------------------------------------------------
// Partitions have the modes ((one instruction, further instructions), Rest...); `at` holds the coordinates of the same
// elements. Precondition: the elements of one instruction are either all inside `extent` or all outside.

// Whether the copy atom is predicated and writes zeros itself (cp.async with zfill).
template <class Traits, class = void> constexpr bool takes_predicate = false;
template <class Traits>
constexpr bool takes_predicate<Traits, std::void_t<decltype(std::declval<const Traits&>().with(true))>> = true;

// Calls visit(inside, from, to) for each instruction.
template <class Extent, class At, class From, class To, class Visit>
CUTE_DEVICE void each_instruction(const Extent& extent, const At& at, const From& from, To&& to, const Visit& visit) {
  using namespace cute;
  const auto at_i = group_modes<1, At::rank>(at);
  const auto from_i = group_modes<1, At::rank>(from);
  auto to_i = group_modes<1, At::rank>(to);
  CUTE_UNROLL
  for (int i = 0; i < size<1>(at_i); ++i) {
    CUTE_UNROLL
    for (int v = 0; v < size<0, 1>(at_i); ++v) {
      const bool inside = elem_less(at_i(make_coord(_0{}, v), i), extent);
      visit(inside, from_i(make_coord(_, v), i), to_i(make_coord(_, v), i));
    }
  }
}

// The tile of `shape` at the coordinate `start`.
template <class Tensor, class Shape, class Start>
CUTE_DEVICE auto tile_at(const Tensor& tensor, const Shape& shape, const Start& start) {
  return cute::local_tile(cute::domain_offset(start, tensor), shape, cute::repeat<cute::rank_v<Start>>(cute::_0{}));
}

// Global to shared memory: `to` = the tile of `from` at `start`, with zeros out of bounds; asynchronous (cp.async) if
// the atom is. Called by: all threads of the copy.
template <class TiledCopy, class From, class Start, class To>
CUTE_DEVICE void copy_tile(const TiledCopy& tiled, const From& from, const Start& start, To&& to) {
  using namespace cute;
  const auto slice = tiled.get_slice(threadIdx.x);
  const auto tile = product_each(shape(to));
  const auto all = make_identity_tensor(shape(from));
  const auto at = slice.partition_S(tile_at(all, tile, start));
  const auto parts = slice.partition_S(tile_at(from, tile, start));
  each_instruction(shape(from), at, parts, slice.partition_D(to), [&](bool inside, const auto& part, auto&& into) {
    if constexpr (takes_predicate<typename TiledCopy::Traits>)
      copy(tiled.with(inside), part, into);
    else if (inside)
      copy(tiled, part, into);
    else
      clear(into);
  });
}

// Registers to global memory: stores an accumulator of the TiledMMA from which `tiled` was made to the tile of `to` at
// `start`; out-of-bounds elements are not written. Called by: all threads of the MMA.
template <class TiledCopy, class From, class To, class Start, class Shape>
CUTE_DEVICE void store_tile(const TiledCopy& tiled, const From& from, const To& to, const Start& start,
                            const Shape& tile) {
  using namespace cute;
  const auto slice = tiled.get_slice(threadIdx.x);
  const auto all = make_identity_tensor(shape(to));
  const auto at = slice.partition_D(tile_at(all, tile, start));
  auto parts = slice.partition_D(tile_at(to, tile, start));
  each_instruction(shape(to), at, slice.retile_S(from), parts, [&](bool inside, const auto& part, auto&& into) {
    if (inside) copy(tiled, part, into);
  });
}

// One element of a tensor; zero out of bounds.
template <class Tensor, class... Indices> CUTE_DEVICE auto value_at(const Tensor& tensor, const Indices&... at) {
  using Element = typename Tensor::value_type;
  return cute::elem_less(cute::make_coord(at...), cute::shape(tensor)) ? Element(tensor(at...)) : Element(0);
}

// ---- fragments ------------------------------------------------------------------------------------------------------

// Converts a fragment to a 16-bit type, rounded to nearest even, two elements per register.
template <class Target, class From> CUTE_DEVICE auto converted(const From& from) {
  using namespace cute;
  using Source = typename From::value_type;
  static_assert(sizeof(Target) == 2 && decltype(size(from))::value % 2 == 0, "an even number of 16-bit elements");
  auto to = make_tensor_like<Target>(from);
  auto pairs = recast<uint32_t>(to);
  CUTE_UNROLL
  for (int i = 0; i < size(pairs); ++i) {
    const cutlass::Array<Source, 2> pair{from(2 * i), from(2 * i + 1)};
    const cutlass::Array<Target, 2> rounded = cutlass::NumericArrayConverter<Target, Source, 2>()(pair);
    pairs(i) = reinterpret_cast<const uint32_t&>(rounded);
  }
  return to;
}

// c += a @ b. `a` is (M, K) and `b` is (N, K), both in shared memory; load_a and load_b are ldmatrix copy atoms.
// Called by: all threads of the MMA.
template <class Mma, class LoadA, class LoadB, class A, class B, class C>
CUTE_DEVICE void gemm(const Mma& mma, const LoadA& load_a, const LoadB& load_b, const A& a, const B& b, C& c) {
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
    cute::gemm(mma, tCrA(_, _, k), tCrB(_, _, k), c);
  }
}

// A view of a tile with its modes swapped: (N, K) of a B that is stored as (K, N).
template <class Tensor> CUTE_DEVICE auto swap_modes(const Tensor& tile) {
  using namespace cute;
  const auto modes = make_layout(make_shape(size<1>(tile), size<0>(tile)), GenRowMajor{});
  return make_tensor(tile.data(), composition(tile.layout(), modes));
}

}  // namespace tl
