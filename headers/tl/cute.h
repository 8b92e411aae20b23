// What kernels in CuTe's style include: CuTe itself, the launcher's side of tl, and the few idioms that CuTe leaves to
// each project: predicated copies of whole tiles, a tile's MMA with its operands by ldmatrix, rounding in pairs. All of
// it is C++17 over CuTe's public names.
#pragma once
#include "tl.h"

#include <cute/tensor.hpp>
#include <cute/atom/copy_atom.hpp>
#include <cute/atom/mma_atom.hpp>
#include <cutlass/numeric_conversion.h>

namespace tl {

// ---- predicated copies ----------------------------------------------------------------------------------------------
// Partitions are ((one instruction, further instructions), Rest...); `at` holds the coordinates of the same elements.
// What one instruction moves is inside of `extent` as a whole or not at all: the kernel's copies are chosen so.

// Whether an atom takes a predicate, and writes the zeros itself.
template <class Traits, class = void> constexpr bool takes_predicate = false;
template <class Traits>
constexpr bool takes_predicate<Traits, std::void_t<decltype(std::declval<const Traits&>().with(true))>> = true;

// visit(inside, from, to) for each instruction.
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

// The tile of `shape` of a tensor from the coordinate `start` on.
template <class Tensor, class Shape, class Start>
CUTE_DEVICE auto tile_at(const Tensor& tensor, const Shape& shape, const Start& start) {
  return cute::local_tile(cute::domain_offset(start, tensor), shape, cute::repeat<cute::rank_v<Start>>(cute::_0{}));
}

// Global -> shared: `to` = the tile of `from` at `start`, zeros outside of the tensor; by cp.async where the atom
// is one. Called by: all threads of the copy.
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

// Fragment -> global: the tile of `to` at `start`, of `shape`, = an accumulator of the TiledMMA that `tiled` was made
// of; elements outside of the tensor are not written. Called by: all threads of the MMA.
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

// One element of a tensor, zero outside of it.
template <class Tensor, class... Indices> CUTE_DEVICE auto value_at(const Tensor& tensor, const Indices&... at) {
  using Element = typename Tensor::value_type;
  return cute::elem_less(cute::make_coord(at...), cute::shape(tensor)) ? Element(tensor(at...)) : Element(0);
}

// ---- fragments ------------------------------------------------------------------------------------------------------

// A fragment rounded to a type of 16 bits, to nearest even, in pairs of which each is a register.
template <class Target, class From> CUTE_DEVICE auto converted(const From& from) {
  using namespace cute;
  using Source = typename From::value_type;
  static_assert(sizeof(Target) == 2 && decltype(size(from))::value % 2 == 0, "pairs of 16 bits");
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

// c += a @ b. `a` is (M, K), `b` is (N, K), both in shared memory; the atoms say how ldmatrix brings them to registers.
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

// A tile with its modes swapped: B as (N, K) where it is stored as (K, N).
template <class Tensor> CUTE_DEVICE auto swap_modes(const Tensor& tile) {
  using namespace cute;
  const auto modes = make_layout(make_shape(size<1>(tile), size<0>(tile)), GenRowMajor{});
  return make_tensor(tile.data(), composition(tile.layout(), modes));
}

}  // namespace tl
