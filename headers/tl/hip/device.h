// Device queries of the HIP runtime.
#pragma once
#include <hip/hip_runtime.h>
#include "../status.h"

namespace tl {
namespace hip {

#ifdef TL_HIP_SIMULATED  // no HIP runtime: the simulator executes the target's code
inline hipError_t compare_arch(const char* /*arch*/, int /*device*/, bool& same) {
  same = true;
  return hipSuccess;
}
#else
// Sets `same` to whether the device's gcnArchName is `arch`, apart from feature suffixes (gfx942:sramecc+:xnack-).
inline hipError_t compare_arch(const char* arch, int device, bool& same) {
  hipDeviceProp_t properties;
  hipError_t error = device == TL_CURRENT_DEVICE ? hipGetDevice(&device) : hipSuccess;
  if (error == hipSuccess) error = hipGetDeviceProperties(&properties, device);
  if (error != hipSuccess) return error;
  const char* name = properties.gcnArchName;
  while (*arch != 0 && *arch == *name) ++arch, ++name;
  same = *arch == 0 && (*name == 0 || *name == ':');
  return error;
}
#endif

}  // namespace hip
}  // namespace tl
