// TMA on the CPU engine: as cuda/sm90/tma.h.
#pragma once
#include "mbarrier.h"

namespace tl {

using TensorMap = tl_engine_tensor_map;

TL_DEVICE void tma_load_box(void* to, const TensorMap& map, int row, int column, Barrier& barrier) {
  tl_engine_tma_load(to, &map, &barrier, column, row);
}
TL_DEVICE void tma_store_box(const TensorMap& map, int row, int column, const void* from) {
  tl_engine_tma_store(&map, from, column, row);
}
TL_DEVICE void tma_store_commit() { tl_engine_tma_store_commit(); }
template <int n> TL_DEVICE void tma_store_wait() { tl_engine_tma_store_wait(n); }

// Returns 0. The engine has no alignment demands of its own; it reports what TMA could not do at the load.
inline int tensor_map_16bit(TensorMap& map, const void* base, int rows, int columns, int64_t row_bytes, int box_rows,
                            int box_columns, int swizzle_bytes) {
  map = {base, uint64_t(columns), uint64_t(rows), uint64_t(row_bytes), box_columns, box_rows, 2, swizzle_bytes};
  return 0;
}

}  // namespace tl
