// Grid-wide barriers, and cooperative launches.
#pragma once
#include <cooperative_groups.h>

#include "kernel.h"
#ifndef __CUDACC_RTC__
#include "launch.h"
#endif

namespace tl {

// A barrier of all threads of the grid; what they wrote to global memory before it is visible after it.
// Called by: every thread of the grid, in a launch by tl::launch_cooperative.
// [CUDA C++ Programming Guide, "Cooperative Groups", "Grid Synchronization"]
TL_DEVICE void sync_grid() { cooperative_groups::this_grid().sync(); }

#ifndef __CUDACC_RTC__
// TL_OK if the device supports cooperative launches and all blocks are co-resident (occupancy times the number of
// SMs), else TL_NOT_SUPPORTED.
// [CUDA Runtime API, "cudaOccupancyMaxActiveBlocksPerMultiprocessor", "cudaLaunchCooperativeKernel"]
template <class... Parameters>
tl_status all_at_once(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared_bytes) {
  const void* const function = reinterpret_cast<const void*>(kernel);
  int device = 0, cooperative = 0, multiprocessors = 0, blocks = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess && shared_bytes > cuda::shared_bytes_without_asking)
    error = cuda::allow_shared_memory(function, shared_bytes);
  if (error == cudaSuccess)
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads, shared_bytes);
  if (error != cudaSuccess) return TL_LAUNCH_FAILED + error;
  const uint64_t wanted = uint64_t(grid.x) * grid.y * grid.z, available = uint64_t(blocks) * multiprocessors;
  return cooperative && wanted <= available ? TL_OK : TL_NOT_SUPPORTED;
}

// Cooperative launch; returns a cudaError_t.
template <class... Parameters>
int launch_kernel_together(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                           typename cuda::Exactly<Parameters>::type... arguments) {
  void* values[] = {cuda::address(arguments)..., nullptr};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), grid, block, values, shared_bytes,
                                     static_cast<cudaStream_t>(stream));
}
#endif

}  // namespace tl
