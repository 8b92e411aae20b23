// What all of ck_tile's style includes: ck_tile, configured; vectors and views of tensors, and types of tiles. C++17.
#pragma once
#include "common/offsets.h"
#include "tl.h"

// Conversions to bfloat16 round to nearest even. Out-of-bounds loads move their offset past the buffer's end: one
// select per access instead of one per dword.
#ifndef CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT
#define CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT 0  // CK_TILE_FLOAT_TO_BFLOAT16_STANDARD
#endif
#ifndef CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK
#define CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK 1
#endif
#include <ck_tile/core.hpp>
#include <ck_tile/ops/gemm/warp/warp_gemm.hpp>
#include <ck_tile/ops/gemm/warp/warp_gemm_dispatcher.hpp>
#include <ck_tile/ops/reduce/block/block_reduce.hpp>

static_assert(CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT == CK_TILE_FLOAT_TO_BFLOAT16_STANDARD,
              "conversions to bfloat16 round to nearest even");
static_assert(!CK_TILE_USE_PK_FP16_TILE_CAST, "cast_tile would round toward zero");
static_assert(CK_TILE_EXPERIMENTAL_BLOCK_SYNC_LDS_WITHOUT_SYNC_VMEM,
              "block_sync_lds would wait for the loads of the next tile");

namespace tl {

// ---- tensors --------------------------------------------------------------------------------------------------------
// Elements per access of a tensor whose rows have this alignment.
template <class Alignment, class T>
constexpr int vector_length = Alignment::alignment >= 16 ? 16 / static_cast<int>(sizeof(T)) : 1;

// Whether an encoding's digits multiply to these extents, dimension by dimension; their order is not checked.
template <class Sequence> constexpr int digits_product = 0;
template <ck_tile::index_t... lengths>
constexpr int digits_product<ck_tile::sequence<lengths...>> = (1 * ... * static_cast<int>(lengths));
template <class Encoding, int... extents> constexpr bool has_extents = false;
template <class R, class... H, class PMajor, class PMinor, class YMajor, class YMinor, int... extents>
constexpr bool has_extents<ck_tile::tile_distribution_encoding<R, ck_tile::tuple<H...>, PMajor, PMinor, YMajor, YMinor>,
                           extents...> = sizeof...(H) == sizeof...(extents) && ((digits_product<H> == extents) && ...);

// The type in which windows move elements: ck_tile's buffers know no unsigned integers and no bool.
template <class T> struct InWindows {
  using type = T;
};
template <> struct InWindows<uint8_t> {
  using type = int8_t;
};
template <> struct InWindows<bool> {
  using type = int8_t;
};
template <> struct InWindows<uint32_t> {
  using type = int32_t;
};
template <class T> CK_TILE_HOST_DEVICE auto* window_data(T* data) {
  return reinterpret_cast<typename InWindows<T>::type*>(data);
}
template <class T> CK_TILE_HOST_DEVICE auto* window_data(const T* data) {
  return reinterpret_cast<const typename InWindows<T>::type*>(data);
}

// The view with bounds checks on both sides of the dimensions that are `clipped`: pad_tensor_view checks ends only.
template <class View, ck_tile::index_t... clipped>
CK_TILE_DEVICE auto clip_tensor_view(const View& view, ck_tile::sequence<clipped...>) {
  using namespace ck_tile;
  constexpr int rank = sizeof...(clipped);
  constexpr sequence<clipped...> flags;
  const auto transforms = generate_tuple(
      [&](auto dim) {
        const auto length = view.get_tensor_descriptor().get_length(dim);
        return conditional_expr<flags.at(dim)>(make_pad_transform(length, number<0>{}, number<0>{}),
                                               make_pass_through_transform(length));
      },
      number<rank>{});
  const auto dims = generate_tuple([](auto dim) { return sequence<dim.value>{}; }, number<rank>{});
  return transform_tensor_view(view, transforms, dims, dims);
}

// The type of a tile that the threads hold in registers by `Layout`, a tile_distribution_encoding.
template <class T, class Layout>
using DistributedTile =
    decltype(ck_tile::make_static_distributed_tensor<T>(ck_tile::make_static_tile_distribution(Layout{})));

}  // namespace tl
