// Grid-wide barriers and cooperative launches. Kernels with a grid barrier include this in addition to tl.h.
#pragma once
#include "tl.h"

#if defined(__CUDACC__)
#include "cuda/grid.h"
#elif defined(__HIP__)
#error "barriers of the grid are NVIDIA's alone here: emit the kernel for a cuda target"
#else
#include "host/grid.h"
#endif

#ifndef __CUDACC_RTC__
namespace tl {

// As tl::launch, cooperatively: TL_NOT_SUPPORTED if the blocks do not fit on the device together.
template <class... Parameters>
tl_status launch_together_with(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared_bytes, void* stream,
                               typename ArgumentFor<Parameters>::type... arguments) {
  tl_status status;
  if (!starts(grid, status, arguments...)) return status;
  status = all_at_once(kernel, grid, threads, shared_bytes);
  if (status != TL_OK) return status;
  return status_of(launch_kernel_together(kernel, grid, dim3(threads), shared_bytes, stream, arguments...));
}
template <class Shared, class... Parameters>
tl_status launch_cooperative(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream,
                             typename ArgumentFor<Parameters>::type... arguments) {
  return launch_together_with(kernel, grid, threads, sizeof(Shared), stream, arguments...);
}
template <class... Parameters>
tl_status launch_cooperative(void (*kernel)(Parameters...), dim3 grid, int threads, void* stream,
                             typename ArgumentFor<Parameters>::type... arguments) {
  return launch_together_with(kernel, grid, threads, 0, stream, arguments...);
}

}  // namespace tl
#endif
