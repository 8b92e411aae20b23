// Launches through the HIP runtime.
#pragma once
#include "kernel.h"

namespace tl {
namespace hip {
// A parameter's type, but not deduced from this argument: it converts to what the kernel takes.
template <class T> struct Exactly {
  using type = T;
};
}  // namespace hip

// The seam: launches with `shared_bytes` of dynamic shared memory on `stream` (a hipStream_t); returns a hipError_t.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                  typename hip::Exactly<Parameters>::type... arguments) {
  void* values[] = {&arguments..., nullptr};
  return hipLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, values, shared_bytes,
                         static_cast<hipStream_t>(stream));
}

}  // namespace tl
