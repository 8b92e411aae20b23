// Kernel launches by the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>

#include "../status.h"
#include "kernel.h"

namespace tl {
namespace cuda {

// A non-deduced parameter type: the argument converts to the kernel's parameter.
template <class T> struct Exactly {
  using type = const T&;
};
// cudaLaunchKernel takes pointers to non-const, but only reads the arguments.
template <class T> void* address(const T& argument) { return const_cast<T*>(&argument); }

// Dynamic shared memory per block above this size needs cudaFuncAttributeMaxDynamicSharedMemorySize.
// [CUDA C++ Programming Guide, "Compute Capabilities: 8.x"]
constexpr size_t shared_bytes_without_asking = 48 << 10;

// Whether code for `arch`, in nvcc's spelling, runs on a GPU of this compute capability (90 for 9.0): sm_80 on 8.0 and
// later, sm_90a on 9.0 only. [PTX ISA, ".target"]
constexpr bool arch_runs_on(const char* arch, int capability) {
  int number = 0;
  const char* at = arch + 3;  // after "sm_"
  for (; *at >= '0' && *at <= '9'; ++at) number = 10 * number + (*at - '0');
  return *at == 'a' ? capability == number : capability >= number;
}
static_assert(arch_runs_on("sm_80", 90) && arch_runs_on("sm_100a", 100) && !arch_runs_on("sm_90a", 100), "");

// Sets the kernel's maximum dynamic shared memory on the current device. Any thread.
// [CUDA C++ Programming Guide, "Shared Memory"; CUDA Runtime API, "cudaFuncSetAttribute"]
inline cudaError_t allow_shared_memory(const void* kernel, size_t bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

// A kernel, and a bit mask of the device ordinals on which its attribute is set. Both are accessed by the host
// compiler's atomic built-ins: <atomic> adds 0.05 s to each compilation.
// [GCC manual, "Built-in Functions for Memory Model Aware Atomic Operations"]
struct Allowed {
  const void* kernel;
  uint64_t devices;
};

// The kernel's entry in a lock-free table; null if the table is full.
static inline Allowed* allowed(const void* kernel) {
  static Allowed entries[32];  // static initialisation to zero
  for (Allowed& entry : entries) {
    const void* owner = __atomic_load_n(&entry.kernel, __ATOMIC_RELAXED);
    constexpr bool may_fail_without_reason = false;
    if (owner == nullptr && __atomic_compare_exchange_n(&entry.kernel, &owner, kernel, may_fail_without_reason,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
      owner = kernel;
    if (owner == kernel) return &entry;
  }
  return nullptr;
}

// The same, once per kernel and device; a kernel is always launched with the same size. Thread-safe: concurrent first
// calls set the same attribute.
static inline cudaError_t allow_shared_memory_once(const void* kernel, size_t bytes) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  Allowed* const entry = device < 64 ? allowed(kernel) : nullptr;
  const uint64_t bit = uint64_t(1) << device % 64;
  if (entry && __atomic_load_n(&entry->devices, __ATOMIC_ACQUIRE) & bit) return cudaSuccess;
  error = allow_shared_memory(kernel, bytes);
  if (entry && error == cudaSuccess) __atomic_fetch_or(&entry->devices, bit, __ATOMIC_RELEASE);
  return error;
}

// cudaLaunchKernel, after setting the shared-memory attribute if needed.
inline cudaError_t start(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                         void* stream) {
  const auto in_order = static_cast<cudaStream_t>(stream);
  if (shared_bytes > shared_bytes_without_asking) {
    const cudaError_t error = allow_shared_memory_once(kernel, shared_bytes);
    if (error != cudaSuccess) return error;
  }
  const cudaError_t error = cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, in_order);
  if (error != cudaErrorInvalidValue || shared_bytes <= shared_bytes_without_asking) return error;
  // cudaDeviceReset discards the attribute; the table does not know.
  cudaGetLastError();
  const cudaError_t allowed_again = allow_shared_memory(kernel, shared_bytes);
  if (allowed_again != cudaSuccess) return allowed_again;
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, in_order);
}
// Launch with programmatic dependent launch: the kernel may start before the preceding kernels of the stream complete.
inline cudaError_t start_early(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               void* stream) {
  if (shared_bytes > shared_bytes_without_asking) {
    const cudaError_t error = allow_shared_memory(kernel, shared_bytes);
    if (error != cudaSuccess) return error;
  }
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream), config.attrs = &early, config.numAttrs = 1;
  return cudaLaunchKernelExC(&config, kernel, arguments);
}

}  // namespace cuda

// The number of SMs of the current device; 1 if the query fails.
inline int multiprocessors() {
  int device = 0, count = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return error == cudaSuccess && count > 0 ? count : 1;
}

// Zeroes device memory in stream order; returns a cudaError_t.
inline int zero_memory(void* memory, size_t bytes, void* stream) {
  return cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream));
}

// The largest gridDim.y and gridDim.z. [CUDA C++ Programming Guide, "Compute Capabilities"]
constexpr int max_grid_yz = 65535;

// TL_OK if the device with this ordinal, or the current one (TL_CURRENT_DEVICE), runs code for `arch` and allows
// `shared_bytes` of shared memory per block, else TL_WRONG_DEVICE. Later GPUs may allow less than `arch`: 8.6 than 8.0.
// [CUDA C++ Programming Guide, "Compute Capabilities", "Technical Specifications per Compute Capability"]
inline tl_status check_device(const char* arch, int device, size_t shared_bytes = 0) {
  int major = 0, minor = 0, shared_limit = 0;
  cudaError_t error = device == TL_CURRENT_DEVICE ? cudaGetDevice(&device) : cudaSuccess;
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (error == cudaSuccess && shared_bytes > 0)
    error = cudaDeviceGetAttribute(&shared_limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error != cudaSuccess) return TL_LAUNCH_FAILED + error;
  const bool fits = shared_bytes <= static_cast<size_t>(shared_limit);
  return fits && cuda::arch_runs_on(arch, 10 * major + minor) ? TL_OK : TL_WRONG_DEVICE;
}

// Launches with `shared_bytes` of dynamic shared memory on `stream` (a cudaStream_t); returns a cudaError_t.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                  typename cuda::Exactly<Parameters>::type... arguments) {
  void* values[] = {cuda::address(arguments)..., nullptr};
  return cuda::start(reinterpret_cast<const void*>(kernel), grid, block, values, shared_bytes, stream);
}
// The same with programmatic dependent launch: the kernel itself waits for the preceding ones (griddepcontrol_wait).
// [CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization"]
template <class... Parameters>
int launch_kernel_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                        typename cuda::Exactly<Parameters>::type... arguments) {
  void* values[] = {cuda::address(arguments)..., nullptr};
  return cuda::start_early(reinterpret_cast<const void*>(kernel), grid, block, values, shared_bytes, stream);
}
// The same for a kernel with thread block clusters: its __cluster_dims__ attribute defines their shape.
// [CUDA C++ Programming Guide, "Thread Block Clusters"]
template <class... Parameters>
int launch_kernel_in_clusters(void (*kernel)(Parameters...), dim3 /*cluster*/, dim3 grid, dim3 block,
                              size_t shared_bytes, void* stream,
                              typename cuda::Exactly<Parameters>::type... arguments) {
  return launch_kernel(kernel, grid, block, shared_bytes, stream, arguments...);
}

}  // namespace tl
