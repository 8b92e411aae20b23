// Tensor maps (CUtensorMap), encoded by the driver. Host side.
#pragma once
#include <cuda_runtime_api.h>

#include "tma.h"

namespace tl {
namespace cuda {

// The values of the driver's enumerations that are used here: <cuda.h> has 3000 lines, which each compilation would
// parse in three passes. tests/compile compares them with it. [CUDA Driver API, "CUtensorMapDataType" and following]
enum TensorMapType { map_uint8 = 0, map_uint16 = 1, map_uint64 = 4, map_float32 = 7 };
enum TensorMapInterleave { map_interleave_none = 0 };
enum TensorMapSwizzle { map_swizzle_none = 0, map_swizzle_32B = 1, map_swizzle_64B = 2, map_swizzle_128B = 3 };
enum TensorMapPromotion { map_promotion_none = 0, map_promotion_256B = 3 };
enum TensorMapFill { map_fill_zeros = 0 };

// cuTensorMapEncodeTiled, with CUresult, cuuint64_t and cuuint32_t as int, uint64_t and uint32_t.
using EncodeTensorMap = int (*)(TensorMap*, TensorMapType, uint32_t rank, void* base, const uint64_t* extents,
                                const uint64_t* strides, const uint32_t* box, const uint32_t* steps,
                                TensorMapInterleave, TensorMapSwizzle, TensorMapPromotion, TensorMapFill);

// Looks up the driver's function at run time, so that nothing links against libcuda; null and an error code if it is
// missing.
static inline EncodeTensorMap find_encode_tensor_map(int& error) {
  // One per library (static); concurrent first calls store the same pointer.
  static EncodeTensorMap found = nullptr;
  if (const auto known = __atomic_load_n(&found, __ATOMIC_RELAXED)) return known;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
  error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &result);
#else
  error = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &result);
#endif
  if (error == 0 && !function) error = cudaErrorNotSupported;
  const auto encode = reinterpret_cast<EncodeTensorMap>(function);
  __atomic_store_n(&found, encode, __ATOMIC_RELAXED);
  return encode;
}

}  // namespace cuda

// Encodes a tensor map. Dimensions are innermost first: extents and box in elements, strides from the second dimension
// on in bytes. `base` and strides are multiples of 16. A row of the box has at most `swizzle_bytes` bytes (128, 64, 32;
// 0: no swizzle). Elements have 1, 2, 4 or 8 bytes; 4-byte elements are floats, as TMA reductions require. Returns 0,
// or an error code of the driver (CUresult) or the runtime. Host side. [CUDA Driver API, "cuTensorMapEncodeTiled"]
inline int encode_tensor_map(TensorMap& map, const void* base, int element_bytes, int rank, const uint64_t* extents,
                             const uint64_t* strides, const uint32_t* box, int swizzle_bytes) {
  int error = 0;
  const auto encode = cuda::find_encode_tensor_map(error);
  if (!encode) return error;
  const auto type = element_bytes == 1   ? cuda::map_uint8
                    : element_bytes == 2 ? cuda::map_uint16
                    : element_bytes == 4 ? cuda::map_float32
                                         : cuda::map_uint64;
  const auto swizzle = swizzle_bytes == 128  ? cuda::map_swizzle_128B
                       : swizzle_bytes == 64 ? cuda::map_swizzle_64B
                       : swizzle_bytes == 32 ? cuda::map_swizzle_32B
                                             : cuda::map_swizzle_none;
  // L2 promotion to 256 bytes, unless a stride is no multiple of 64 bytes.
  auto promotion = cuda::map_promotion_256B;
  for (int d = 0; d + 1 < rank; ++d)
    if (strides[d] % 64 != 0) promotion = cuda::map_promotion_none;
  const uint32_t steps[] = {1, 1, 1, 1, 1};
  return encode(&map, type, uint32_t(rank), const_cast<void*>(base), extents, strides, box, steps,
                cuda::map_interleave_none, swizzle, promotion, cuda::map_fill_zeros);
}

}  // namespace tl
