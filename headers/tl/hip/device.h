// Device queries of the HIP runtime.
#pragma once
#include <hip/hip_runtime.h>
#include <stdint.h>
#include "../status.h"

namespace tl {
namespace hip {

#ifdef TL_HIP_SIMULATED  // no HIP runtime: the simulator executes the target's code
inline hipError_t compare_arch(const char* /*arch*/, int /*device*/, bool& same) {
  same = true;
  return hipSuccess;
}
#else
// The name of an architecture without its features (gfx942 of gfx942:sramecc+:xnack-), a character per byte; 0 if it
// has more than 8.
inline uint64_t packed_name(const char* name) {
  uint64_t packed = 0;
  for (int i = 0; name[i] != 0 && name[i] != ':'; ++i) {
    if (i == 8) return 0;
    packed = packed << 8 | static_cast<unsigned char>(name[i]);
  }
  return packed;
}
// The packed names of the first 64 devices, 0 where none was asked for: a launch queries no properties of a device that
// an earlier one queried.
inline uint64_t* known_names() {
  static uint64_t names[64];
  return names;
}
// Sets `same` to whether the device's gcnArchName is `arch`, apart from features. Thread-safe: concurrent first calls
// store the same name.
inline hipError_t compare_arch(const char* arch, int device, bool& same) {
  hipError_t error = device == TL_CURRENT_DEVICE ? hipGetDevice(&device) : hipSuccess;
  if (error != hipSuccess) return error;
  uint64_t* const known = device >= 0 && device < 64 ? known_names() + device : nullptr;
  uint64_t name = known ? __atomic_load_n(known, __ATOMIC_RELAXED) : 0;
  if (name == 0) {
    hipDeviceProp_t properties;
    error = hipGetDeviceProperties(&properties, device);
    if (error != hipSuccess) return error;
    name = packed_name(properties.gcnArchName);
    if (known) __atomic_store_n(known, name, __ATOMIC_RELAXED);
  }
  same = name != 0 && name == packed_name(arch);
  return hipSuccess;
}
#endif

}  // namespace hip
}  // namespace tl
