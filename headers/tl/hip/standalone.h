// The little of HIP's own headers that emitted text needs, so that a plain clang compiles it: no ROCm, no device library
// (clang-19 -x hip --offload-arch=gfx942 -nogpuinc -nogpulib). With ROCm's headers at hand this file is not included.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __align__(n) __attribute__((aligned(n)))

struct dim3 {
  uint32_t x, y, z;
  constexpr __host__ __device__ dim3(uint32_t x_ = 1, uint32_t y_ = 1, uint32_t z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline __host__ __device__ uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline __host__ __device__ uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

namespace tl {
namespace hip {

// threadIdx.x and its kin read a register when they are used: objects without content that convert.
// [clang, "AMDGPU builtins": __builtin_amdgcn_workitem_id_x, __builtin_amdgcn_workgroup_id_x, ..._workgroup_size_x]
#define TL_HIP_INDEX(Name, builtin)                                  \
  struct Name {                                                      \
    struct X {                                                       \
      __device__ operator uint32_t() const { return builtin##_x(); } \
    } x;                                                             \
    struct Y {                                                       \
      __device__ operator uint32_t() const { return builtin##_y(); } \
    } y;                                                             \
    struct Z {                                                       \
      __device__ operator uint32_t() const { return builtin##_z(); } \
    } z;                                                             \
  }
TL_HIP_INDEX(ThreadIndex, __builtin_amdgcn_workitem_id);
TL_HIP_INDEX(BlockIndex, __builtin_amdgcn_workgroup_id);
TL_HIP_INDEX(BlockExtent, __builtin_amdgcn_workgroup_size);
#undef TL_HIP_INDEX

// Blocks of the launch: HIP's grid is counted in threads.
struct GridExtent {
  struct X {
    __device__ operator uint32_t() const {
      return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
    }
  } x;
  struct Y {
    __device__ operator uint32_t() const {
      return __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y();
    }
  } y;
  struct Z {
    __device__ operator uint32_t() const {
      return __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z();
    }
  } z;
};

}  // namespace hip
}  // namespace tl

extern const __device__ __attribute__((weak)) tl::hip::ThreadIndex threadIdx;
extern const __device__ __attribute__((weak)) tl::hip::BlockIndex blockIdx;
extern const __device__ __attribute__((weak)) tl::hip::BlockExtent blockDim;
extern const __device__ __attribute__((weak)) tl::hip::GridExtent gridDim;

// [HIP API, "Execution Control"]
using hipError_t = int;
using hipStream_t = void*;
constexpr int hipSuccess = 0;
extern "C" hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                      size_t shared_bytes, hipStream_t stream);

namespace tl {
namespace hip {
// Only ROCm's headers know what the runtime tells of a device; without them a wrong one refuses at the launch.
inline hipError_t compare_arch(const char* /*arch*/, int /*device*/, bool& same) {
  same = true;
  return hipSuccess;
}
}  // namespace hip
}  // namespace tl

// Device overloads of the C library, as far as the compiler expands them inline without a device library.
#define TL_HIP_MATH(type, name, builtin) \
  static __device__ inline __attribute__((always_inline)) type name(type x) { return builtin(x); }
TL_HIP_MATH(float, expf, __builtin_expf)
TL_HIP_MATH(float, exp2f, __builtin_exp2f)
TL_HIP_MATH(float, logf, __builtin_logf)
TL_HIP_MATH(float, log2f, __builtin_log2f)
TL_HIP_MATH(float, sqrtf, __builtin_sqrtf)
TL_HIP_MATH(float, sinf, __builtin_sinf)
TL_HIP_MATH(float, cosf, __builtin_cosf)
TL_HIP_MATH(float, floorf, __builtin_floorf)
TL_HIP_MATH(float, ceilf, __builtin_ceilf)
TL_HIP_MATH(float, rintf, __builtin_rintf)
TL_HIP_MATH(float, truncf, __builtin_truncf)
TL_HIP_MATH(float, fabsf, __builtin_fabsf)
TL_HIP_MATH(double, sqrt, __builtin_sqrt)
TL_HIP_MATH(double, fabs, __builtin_fabs)
#undef TL_HIP_MATH
#define TL_HIP_MATH(type, name, builtin) \
  static __device__ inline __attribute__((always_inline)) type name(type x, type y) { return builtin(x, y); }
TL_HIP_MATH(float, powf, __builtin_powf)
TL_HIP_MATH(float, fmaxf, __builtin_fmaxf)
TL_HIP_MATH(float, fminf, __builtin_fminf)
TL_HIP_MATH(double, fmax, __builtin_fmax)
TL_HIP_MATH(double, fmin, __builtin_fmin)
#undef TL_HIP_MATH
