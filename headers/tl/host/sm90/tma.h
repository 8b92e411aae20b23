// TMA on the CPU engine: as cuda/sm90/tma.h.
#pragma once
#include "mbarrier.h"

namespace tl {

using TensorMap = tl_engine_tensor_map;

template <int rank>
TL_DEVICE void tma_load_box(void* to, const TensorMap& map, const int (&at)[rank], Barrier& barrier) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  tl_engine_tma_load(to, &map, &barrier, at, rank);
}
TL_DEVICE void tma_load_box(void* to, const TensorMap& map, int row, int column, Barrier& barrier) {
  const int at[] = {row, column};
  tl_engine_tma_load(to, &map, &barrier, at, 2);
}
template <int rank> TL_DEVICE void tma_store_box(const TensorMap& map, const int (&at)[rank], const void* from) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  tl_engine_tma_store(&map, from, at, rank);
}
TL_DEVICE void tma_store_box(const TensorMap& map, int row, int column, const void* from) {
  const int at[] = {row, column};
  tl_engine_tma_store(&map, from, at, 2);
}
template <int rank> TL_DEVICE void tma_add_box(const TensorMap& map, const int (&at)[rank], const void* from) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  tl_engine_tma_add(&map, from, at, rank);
}
TL_DEVICE void tma_store_commit() { tl_engine_tma_store_commit(); }
template <int n> TL_DEVICE void tma_store_wait() { tl_engine_tma_store_wait(n); }
template <int n> TL_DEVICE void tma_store_wait_read() { tl_engine_tma_store_wait_read(n); }

// Returns 0. The engine reports invalid maps at the load or store.
inline int encode_tensor_map(TensorMap& map, const void* base, int element_bytes, int rank, const uint64_t* extents,
                             const uint64_t* strides, const uint32_t* box, int swizzle_bytes) {
  map = {};
  map.base = base, map.rank = rank, map.element_bytes = element_bytes, map.swizzle_bytes = swizzle_bytes;
  for (int d = 0; d < 5; ++d) {
    map.extents[d] = d < rank ? extents[d] : 1;
    map.box[d] = d < rank ? int32_t(box[d]) : 1;
    map.strides[d] = d == 0 ? uint64_t(element_bytes) : d < rank ? strides[d - 1] : 0;
  }
  return 0;
}

}  // namespace tl
