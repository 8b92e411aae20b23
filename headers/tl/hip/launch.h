// Kernel launches by the HIP runtime.
#pragma once
#include "../status.h"
#include "kernel.h"

namespace tl {
namespace hip {
// A non-deduced parameter type: the argument converts to the kernel's parameter.
template <class T> struct Exactly {
  using type = T;
};
}  // namespace hip

// The largest gridDim.y and gridDim.z. [HIP documentation, hipDeviceAttributeMaxGridDimY]
constexpr int max_grid_yz = 65535;

// TL_OK if the device with this ordinal, or the current one (TL_CURRENT_DEVICE), runs code for `arch`, such as gfx942,
// else TL_WRONG_DEVICE.
inline tl_status check_device(const char* arch, int device) {
  bool same = false;
  const hipError_t error = hip::compare_arch(arch, device, same);
  if (error != hipSuccess) return TL_LAUNCH_FAILED + error;
  return same ? TL_OK : TL_WRONG_DEVICE;
}

// Launches with `shared_bytes` of dynamic shared memory on `stream` (a hipStream_t); returns a hipError_t.
template <class... Parameters>
int launch_kernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, void* stream,
                  typename hip::Exactly<Parameters>::type... arguments) {
  void* values[] = {&arguments..., nullptr};
  return hipLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, values, shared_bytes,
                         static_cast<hipStream_t>(stream));
}

}  // namespace tl
