// TMA: boxes of two-dimensional tensors.  [PTX ISA, "Data Movement and Conversion: cp.async.bulk.tensor"]
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>
#include "mbarrier.h"

namespace tl {

using TensorMap = CUtensorMap;

// The box of a tensor at (row, column) to shared memory; its bytes arrive at `barrier`. What lies outside of the tensor
// becomes zero. The column is a multiple of 16 bytes; both may be negative. Who: one thread.
TL_DEVICE void tma_load_box(void* to, const TensorMap& map, int row, int column, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          shared_address(to)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(&barrier))
      : "memory");
}
// Shared memory to a box of a tensor; what lies past its ends is dropped. Neither row nor column may be negative (an
// H200 answers "illegal instruction"); the column is a multiple of 16 bytes. Who: one thread.
TL_DEVICE void tma_store_box(const TensorMap& map, int row, int column, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map), "r"(column),
               "r"(row), "r"(shared_address(from))
               : "memory");
}
// Closes a group of stores. Who: the thread that issued them.  [cp.async.bulk.commit_group]
TL_DEVICE void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until all but the newest n groups are complete. Who: the thread that issued them.  [cp.async.bulk.wait_group]
template <int n> TL_DEVICE void tma_store_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory"); }

// Describes a row-major tensor of 16-bit elements for boxes of box_rows x box_columns; `swizzle_bytes` is 0 or 128.
// Gives 0, or an error code of the driver (CUresult) or the runtime.
inline int tensor_map_16bit(TensorMap& map, const void* base, int rows, int columns, int64_t row_bytes, int box_rows,
                            int box_columns, int swizzle_bytes) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) return error;
  const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  const cuuint64_t extents[] = {cuuint64_t(columns), cuuint64_t(rows)}, strides[] = {cuuint64_t(row_bytes)};
  const cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows)}, steps[] = {1, 1};
  return encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, const_cast<void*>(base), extents, strides, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_bytes ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace tl
