// Tensor maps, made by the driver. Host side.
#pragma once
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "tma.h"

namespace tl {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) % alignof(CUtensorMap) == 0, "");

namespace cuda {

using EncodeTensorMap = decltype(&cuTensorMapEncodeTiled);

// The driver's function, found at run time so that nothing links against libcuda; null, and why, when there is none.
static inline EncodeTensorMap find_encode_tensor_map(int& error) {
  // Of this library, as the function is static; any thread may find it, and all find the same.
  static EncodeTensorMap found = nullptr;
  if (const auto known = __atomic_load_n(&found, __ATOMIC_RELAXED)) return known;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
  error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
  if (error == 0 && !function) error = cudaErrorNotSupported;
  const auto encode = reinterpret_cast<EncodeTensorMap>(function);
  __atomic_store_n(&found, encode, __ATOMIC_RELAXED);
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
  return encode(reinterpret_cast<CUtensorMap*>(&map), type, cuuint32_t(rank), const_cast<void*>(base), sizes, pitches,
                box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace tl
