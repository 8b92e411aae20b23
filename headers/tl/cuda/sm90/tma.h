// TMA: boxes of tensors with two to five dimensions.
// [PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk.tensor"]
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <atomic>
#include "mbarrier.h"

namespace tl {

// What TMA knows of a tensor. Kernels take it as `const __grid_constant__ tl::TensorMap`.
using TensorMap = CUtensorMap;

// The box of a tensor at these coordinates, outermost first, to shared memory; its bytes arrive at `barrier`. What lies
// outside of the tensor becomes zero. The last coordinate is a multiple of 16 bytes; all may be negative. Who: one
// thread.
#define TL_TMA_LOAD(dims, coordinates, ...)                                                    \
  asm volatile("cp.async.bulk.tensor." dims                                                    \
               ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {" coordinates \
               "}], [%2];" ::"r"(shared_address(to)),                                          \
               "l"(&map), "r"(shared_address(&barrier)), __VA_ARGS__                           \
               : "memory")
template <int rank>
TL_DEVICE void tma_load_box(void* to, const TensorMap& map, const int (&at)[rank], Barrier& barrier) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  if constexpr (rank == 2) TL_TMA_LOAD("2d", "%3, %4", "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 3) TL_TMA_LOAD("3d", "%3, %4, %5", "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 4) TL_TMA_LOAD("4d", "%3, %4, %5, %6", "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 5)
    TL_TMA_LOAD("5d", "%3, %4, %5, %6, %7", "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
}
#undef TL_TMA_LOAD
TL_DEVICE void tma_load_box(void* to, const TensorMap& map, int row, int column, Barrier& barrier) {
  tma_load_box(to, map, {row, column}, barrier);
}

// Shared memory to a box of a tensor; what lies past its ends is dropped. No coordinate may be negative (an H200
// answers "illegal instruction"); the last is a multiple of 16 bytes. Who: one thread.
#define TL_TMA_STORE(dims, coordinates, ...)                                                    \
  asm volatile("cp.async.bulk.tensor." dims ".global.shared::cta.bulk_group [%0, {" coordinates \
               "}], [%1];" ::"l"(&map),                                                         \
               "r"(shared_address(from)), __VA_ARGS__                                           \
               : "memory")
template <int rank> TL_DEVICE void tma_store_box(const TensorMap& map, const int (&at)[rank], const void* from) {
  static_assert(rank >= 2 && rank <= 5, "a tensor map has two to five dimensions");
  if constexpr (rank == 2) TL_TMA_STORE("2d", "%2, %3", "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 3) TL_TMA_STORE("3d", "%2, %3, %4", "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 4) TL_TMA_STORE("4d", "%2, %3, %4, %5", "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
  if constexpr (rank == 5)
    TL_TMA_STORE("5d", "%2, %3, %4, %5, %6", "r"(at[4]), "r"(at[3]), "r"(at[2]), "r"(at[1]), "r"(at[0]));
}
#undef TL_TMA_STORE
TL_DEVICE void tma_store_box(const TensorMap& map, int row, int column, const void* from) {
  tma_store_box(map, {row, column}, from);
}
// Closes a group of stores. Who: the thread that issued them.  [cp.async.bulk.commit_group]
TL_DEVICE void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until all but the newest n groups are complete. Who: the thread that issued them.  [cp.async.bulk.wait_group]
template <int n> TL_DEVICE void tma_store_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) : "memory"); }
// The same, but only until their shared memory has been read: it may be written again, or the block may end.
template <int n> TL_DEVICE void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) : "memory");
}

namespace cuda {

using EncodeTensorMap = decltype(&cuTensorMapEncodeTiled);

// The driver's function, found at run time so that nothing links against libcuda; null, and why, when there is none.
static inline EncodeTensorMap find_encode_tensor_map(int& error) {
  // Of this library, as the function is static; any thread may find it, and all find the same.
  static std::atomic<EncodeTensorMap> found{nullptr};
  if (const auto known = found.load(std::memory_order_relaxed)) return known;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
  if (error == 0 && !function) error = cudaErrorNotSupported;
  const auto encode = reinterpret_cast<EncodeTensorMap>(function);
  found.store(encode, std::memory_order_relaxed);
  return encode;
}

}  // namespace cuda

// Describes a tensor to TMA. Innermost dimension first: extents and the box in elements, strides of the dimensions from
// the second on in bytes, multiples of 16 as `base` is. A box's row is at most `swizzle_bytes` (128, 64, 32), unless
// that is 0. Elements have 1, 2, 4 or 8 bytes. Gives 0, or an error code of the driver (CUresult) or the runtime. Host
// side. [CUDA Driver API, "cuTensorMapEncodeTiled"]
inline int encode_tensor_map(TensorMap& map, const void* base, int element_bytes, int rank, const uint64_t* extents,
                             const uint64_t* strides, const uint32_t* box, int swizzle_bytes) {
  int error = 0;
  const auto encode = cuda::find_encode_tensor_map(error);
  if (!encode) return error;
  const auto type = element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                    : element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                    : element_bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                                         : CU_TENSOR_MAP_DATA_TYPE_UINT64;
  const auto swizzle = swizzle_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                       : swizzle_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                       : swizzle_bytes == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                             : CU_TENSOR_MAP_SWIZZLE_NONE;
  cuuint64_t sizes[5], pitches[4];
  for (int d = 0; d < rank; ++d) sizes[d] = extents[d];
  // L2 may fetch 256 bytes at a time, except where rows start within 64-byte units: there it would fetch in vain.
  auto promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
  for (int d = 0; d + 1 < rank; ++d) {
    pitches[d] = strides[d];
    if (strides[d] % 64 != 0) promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  }
  const cuuint32_t steps[] = {1, 1, 1, 1, 1};
  return encode(&map, type, cuuint32_t(rank), const_cast<void*>(base), sizes, pitches, box, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
// A row-major tensor of 16-bit elements.
inline int tensor_map_16bit(TensorMap& map, const void* base, int rows, int columns, int64_t row_bytes, int box_rows,
                            int box_columns, int swizzle_bytes) {
  const uint64_t extents[] = {uint64_t(columns), uint64_t(rows)}, stride = uint64_t(row_bytes);
  const uint32_t box[] = {uint32_t(box_columns), uint32_t(box_rows)};
  return encode_tensor_map(map, base, 2, 2, extents, &stride, box, swizzle_bytes);
}

}  // namespace tl
