// Tensor maps for TMA, encoded by launchers. Host side.
#pragma once
#include "../../sm90_primitives.h"
#include "../launch.h"
#include "../tensor.h"
#include "boxes.h"

namespace tl {

// Encodes the map of a row-major matrix of 16-bit elements; returns 0 or an error code.
inline int tensor_map_16bit(TensorMap& map, const void* base, int rows, int columns, int64_t row_bytes, int box_rows,
                            int box_columns, int swizzle_bytes) {
  const uint64_t extents[] = {uint64_t(columns), uint64_t(rows)}, stride = uint64_t(row_bytes);
  const uint32_t box[] = {uint32_t(box_columns), uint32_t(box_rows)};
  return encode_tensor_map(map, base, 2, 2, extents, &stride, box, swizzle_bytes);
}

// A tensor map, or the status of a failed encoding: tl::launch then returns that status and launches nothing.
struct TensorMapArgument {
  TensorMap map;
  tl_status status;
  operator const TensorMap&() const { return map; }
};
inline tl_status argument_status(const TensorMapArgument& argument) { return argument.status; }
template <> struct ArgumentFor<TensorMap> {
  using type = const TensorMapArgument&;
};

// The TMA-relevant properties of a tile: rows and columns per box, the tensor dimension of its rows (its columns are
// along the last), element size, and swizzle (0: none).
struct TensorMapTile {
  int box_rows, box_cols, row_dim, element_bytes, swizzle_bytes;
};

// The largest stride in bytes. [CUDA Driver API, cuTensorMapEncodeTiled, globalStrides]
constexpr uint64_t stride_limit = (uint64_t(1) << 40) - 1;

// tensor_map below, for a tensor with `rank` extents and strides in elements, outermost first; without strides it is
// contiguous. A separate function, compiled once for all maps of a launcher.
[[gnu::noinline]] inline TensorMapArgument tensor_map_for(const TensorMapTile& tile, const void* data, int rank,
                                                          const int64_t* extents, const int64_t* apart = nullptr) {
  uint64_t sizes[5], strides[5], stride = uint64_t(tile.element_bytes);
  uint32_t box[5];
  for (int d = 0; d < rank; ++d) {
    const int64_t extent = extents[rank - 1 - d];
    if (extent < 0 || extent > int64_t(1) << 32) return {TensorMap{}, TL_INVALID_SIZE};
    if (extent == 0) return {TensorMap{}, TL_OK};
    sizes[d] = uint64_t(extent);
    box[d] = uint32_t(d == 0 ? tile.box_cols : d == rank - 1 - tile.row_dim ? tile.box_rows : 1);
  }
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return {TensorMap{}, TL_MISALIGNED};
  for (int d = 0; d < rank - 1; ++d) {
    if (apart && apart[rank - 2 - d] < 0) return {TensorMap{}, TL_NOT_SUPPORTED};
    const uint64_t factor = apart ? uint64_t(apart[rank - 2 - d]) : sizes[d];
    stride = apart ? uint64_t(tile.element_bytes) : stride;
    if (factor > stride_limit / stride) return {TensorMap{}, TL_INVALID_SIZE};
    strides[d] = stride *= factor;
    if (stride % 16 != 0) return {TensorMap{}, TL_NOT_SUPPORTED};
  }
  TensorMap map{};
  const int error = encode_tensor_map(map, data, tile.element_bytes, rank, sizes, strides, box, tile.swizzle_bytes);
  return {map, error == 0 ? TL_OK : TL_LAUNCH_FAILED + error};
}

template <class Like, class Along, int rank> constexpr TensorMapTile tensor_map_tile() {
  using Tile = std::remove_reference_t<Like>;
  constexpr int size = sizeof(typename Tile::type);
  constexpr int box_rows = BoxRows<Tile>::value, box_cols = BoxCols<Tile>::value;
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  static_assert(box_rows <= 256 && box_cols <= 256, "TMA moves boxes of at most 256 rows and 256 columns");
  static_assert(Tile::pitch == Tile::slab_cols && Tile::slab_cols * size % 16 == 0, "TMA writes tiles without padding");
  constexpr int swizzle_bytes = alignof(Tile) > 16 ? int(alignof(Tile)) / 8 : 0;
  return {box_rows, box_cols, RowDim<Along, rank>::value, size, swizzle_bytes};
}

// The map of a contiguous row-major tensor for tiles of type Like (or a reference to it). TL_MISALIGNED if `data` is
// not 16-byte aligned, TL_NOT_SUPPORTED if a stride is not a multiple of 16 bytes, TL_INVALID_SIZE if one is 2^40 bytes
// or more. An empty tensor has no map; nothing may be loaded from it.
template <class Like, class Along = LastDims, class... Extents>
TensorMapArgument tensor_map(const void* data, Extents... extents) {
  constexpr int rank = sizeof...(Extents);
  const int64_t outermost_first[] = {int64_t(extents)...};
  return tensor_map_for(tensor_map_tile<Like, Along, rank>(), data, rank, outermost_first);
}
// The same with strides; the last stride is 1.
template <class Like, class Along = LastDims, int rank, class... Extents>
TensorMapArgument tensor_map(const void* data, const Strides<rank>& strides, Extents... extents) {
  static_assert(sizeof...(Extents) == rank, "one stride per extent");
  const int64_t outermost_first[] = {int64_t(extents)...};
  return tensor_map_for(tensor_map_tile<Like, Along, rank>(), data, rank, outermost_first, strides.stride);
}

// The same for a kernel that does not use TMA if a stride is not a multiple of 16 bytes: the map is then empty.
template <class Like, class Along = LastDims, class... Layout>
TensorMapArgument tensor_map_if_aligned(const void* data, const Layout&... layout) {
  const auto argument = tensor_map<Like, Along>(data, layout...);
  return argument.status == TL_NOT_SUPPORTED ? TensorMapArgument{TensorMap{}, TL_OK} : argument;
}

}  // namespace tl
