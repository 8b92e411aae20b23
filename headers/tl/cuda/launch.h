// Launches through the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>
#include "kernel.h"

namespace tl {
namespace cuda {

// A parameter's type, but not deduced from this argument: it converts to what the kernel takes.
template <class T> struct Exactly {
  using type = T;
};

// More shared memory than a block gets without asking. [CUDA C++ Programming Guide, "Compute Capabilities: 8.x"]
constexpr size_t shared_bytes_without_asking = 48 << 10;

}  // namespace cuda

// The seam: launches with `shared_bytes` of dynamic shared memory on `stream` (a cudaStream_t); returns a cudaError_t.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                  typename cuda::Exactly<Parameters>::type... arguments) {
  const void* function = reinterpret_cast<const void*>(kernel);
  if (shared_bytes > cuda::shared_bytes_without_asking) {
    const cudaError_t error =
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  void* values[] = {&arguments..., nullptr};
  return cudaLaunchKernel(function, grid, block, values, shared_bytes, static_cast<cudaStream_t>(stream));
}

}  // namespace tl
