// Launches through the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>
#include "../status.h"
#include "kernel.h"

namespace tl {
namespace cuda {

// A parameter's type, but not deduced from this argument: it converts to what the kernel takes.
template <class T> struct Exactly {
  using type = T;
};

// More shared memory than a block gets without asking. [CUDA C++ Programming Guide, "Compute Capabilities: 8.x"]
constexpr size_t shared_bytes_without_asking = 48 << 10;

// Whether code for `arch`, as nvcc spells it, runs on a GPU of that compute capability, 90 for 9.0: code for sm_80 does
// on 8.0 and later ones, code for sm_90a on 9.0 alone. [PTX ISA, ".target"]
constexpr bool arch_runs_on(const char* arch, int capability) {
  int number = 0;
  const char* at = arch + 3;  // after "sm_"
  for (; *at >= '0' && *at <= '9'; ++at) number = 10 * number + (*at - '0');
  return *at == 'a' ? capability == number : capability >= number;
}
static_assert(arch_runs_on("sm_80", 90) && arch_runs_on("sm_100a", 100) && !arch_runs_on("sm_90a", 100), "");

}  // namespace cuda

// How many blocks a grid may have along y, and along z. [CUDA C++ Programming Guide, "Compute Capabilities"]
constexpr int max_grid_yz = 65535;

// Whether the device of that ordinal, or the current one (TL_CURRENT_DEVICE), runs code for `arch`: TL_OK or
// TL_WRONG_DEVICE. The runtime answers from its own tables: no state is kept here.
inline tl_status check_device(const char* arch, int device) {
  int major = 0, minor = 0;
  cudaError_t error = device == TL_CURRENT_DEVICE ? cudaGetDevice(&device) : cudaSuccess;
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (error != cudaSuccess) return TL_LAUNCH_FAILED + error;
  return cuda::arch_runs_on(arch, 10 * major + minor) ? TL_OK : TL_WRONG_DEVICE;
}

// The seam: launches with `shared_bytes` of dynamic shared memory on `stream` (a cudaStream_t); returns a cudaError_t.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                  typename cuda::Exactly<Parameters>::type... arguments) {
  const void* function = reinterpret_cast<const void*>(kernel);
  // Asked at each launch, as the answer is kept by the runtime, one for each device; it is the same from all threads.
  if (shared_bytes > cuda::shared_bytes_without_asking) {
    const cudaError_t error =
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  void* values[] = {&arguments..., nullptr};
  return cudaLaunchKernel(function, grid, block, values, shared_bytes, static_cast<cudaStream_t>(stream));
}

}  // namespace tl
