// Launches through the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>

#include "../status.h"
#include "kernel.h"

namespace tl {
namespace cuda {

// A parameter's type, but not deduced from this argument: it converts to what the kernel takes.
template <class T> struct Exactly {
  using type = const T&;
};
// The runtime reads arguments only, but asks for pointers to what may be written.
template <class T> void* address(const T& argument) { return const_cast<T*>(&argument); }

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

// Lets the current device start blocks of `kernel` with so much dynamic shared memory. Any thread.
// [CUDA C++ Programming Guide, "Shared Memory"; CUDA Runtime API, "cudaFuncSetAttribute"]
inline cudaError_t allow_shared_memory(const void* kernel, size_t bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}

// A kernel, and a bit for each device, by its ordinal, that allows it its shared memory. Both are read and written by
// the host compiler's atomic functions: <atomic> would cost each compilation 0.05 s.
// [GCC manual, "Built-in Functions for Memory Model Aware Atomic Operations"]
struct Allowed {
  const void* kernel;
  uint64_t devices;
};

// The entry of a kernel, for good; null when too many kernels have one.
static inline Allowed* allowed(const void* kernel) {
  static Allowed entries[32];  // zeros when the program starts: no code runs for it
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

// The same, once for each kernel and device; a kernel is always started with the same number of bytes. Any threads at
// once: those that come before the first is done do the same as it.
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

// Starts a kernel with these addresses of its arguments.
inline cudaError_t start(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                         void* stream) {
  const auto in_order = static_cast<cudaStream_t>(stream);
  if (shared_bytes > shared_bytes_without_asking) {
    const cudaError_t error = allow_shared_memory_once(kernel, shared_bytes);
    if (error != cudaSuccess) return error;
  }
  const cudaError_t error = cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, in_order);
  if (error != cudaErrorInvalidValue || shared_bytes <= shared_bytes_without_asking) return error;
  // Perhaps the device allowed it in another context: it forgets with cudaDeviceReset.
  cudaGetLastError();
  const cudaError_t allowed_again = allow_shared_memory(kernel, shared_bytes);
  if (allowed_again != cudaSuccess) return allowed_again;
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, in_order);
}
// The same where the kernel may start before the ones before it on the stream are done.
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

// Of the current device; 1 where the runtime does not say.
inline int multiprocessors() {
  int device = 0, count = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return error == cudaSuccess && count > 0 ? count : 1;
}

// Writes zeros to device memory, in the order of the stream. 0, or a cudaError_t.
inline int zero_memory(void* memory, size_t bytes, void* stream) {
  return cudaMemsetAsync(memory, 0, bytes, static_cast<cudaStream_t>(stream));
}

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
  void* values[] = {cuda::address(arguments)..., nullptr};
  return cuda::start(reinterpret_cast<const void*>(kernel), grid, block, values, shared_bytes, stream);
}
// The same of a kernel that may start before the ones before it on the stream are done, if they let it: it waits
// itself.
// [CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization"]
template <class... Parameters>
int launch_kernel_early(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                        typename cuda::Exactly<Parameters>::type... arguments) {
  void* values[] = {cuda::address(arguments)..., nullptr};
  return cuda::start_early(reinterpret_cast<const void*>(kernel), grid, block, values, shared_bytes, stream);
}
// The same of a kernel whose blocks run in clusters: its __cluster_dims__ say in which, so that any launch has them.
// [CUDA C++ Programming Guide, "Thread Block Clusters"]
template <class... Parameters>
int launch_kernel_in_clusters(void (*kernel)(Parameters...), dim3 /*cluster*/, dim3 grid, dim3 block,
                              size_t shared_bytes, void* stream,
                              typename cuda::Exactly<Parameters>::type... arguments) {
  return launch_kernel(kernel, grid, block, shared_bytes, stream, arguments...);
}

}  // namespace tl
