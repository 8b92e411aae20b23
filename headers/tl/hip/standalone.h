// The part of HIP's headers that emitted kernels need, for a clang without ROCm and without a device library (clang-19
// -x hip --offload-arch=gfx942 -nogpuinc -nogpulib). Not included if ROCm's headers are available.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
// __launch_bounds__(threads [, waves]): `waves` per SIMD limit the registers per wave.
#define TL_HIP_BOUNDS(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define TL_HIP_BOUNDS_OF_BOTH(threads, waves) TL_HIP_BOUNDS(threads) __attribute__((amdgpu_waves_per_eu(waves)))
#define TL_HIP_THIRD(first, second, third, ...) third
#define __launch_bounds__(...) TL_HIP_THIRD(__VA_ARGS__, TL_HIP_BOUNDS_OF_BOTH, TL_HIP_BOUNDS, )(__VA_ARGS__)
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

#include "library.h"

namespace tl {
namespace hip {

// threadIdx, blockIdx, blockDim: empty objects whose members convert to the value of a built-in.
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

// gridDim in blocks: AMD's grid size is in threads.
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
// Device properties need ROCm's headers; without them the launch fails on a wrong device.
inline hipError_t compare_arch(const char* /*arch*/, int /*device*/, bool& same) {
  same = true;
  return hipSuccess;
}
}  // namespace hip
}  // namespace tl

// Device overloads of the C library: compiler built-ins, and library.h for functions that have none.
#define TL_HIP_MATH(type, name, value) \
  static __device__ inline __attribute__((always_inline)) type name(type x) { return value; }
TL_HIP_MATH(float, expf, __builtin_expf(x))
TL_HIP_MATH(float, exp2f, __builtin_exp2f(x))
TL_HIP_MATH(float, exp10f, static_cast<float>(tl::library::exponential(x * 2.30258509299404568402)))
TL_HIP_MATH(float, logf, __builtin_logf(x))
TL_HIP_MATH(float, log2f, __builtin_log2f(x))
TL_HIP_MATH(float, log10f, __builtin_log10f(x))
TL_HIP_MATH(float, log1pf, static_cast<float>(tl::library::logarithm_of_one_more(x)))
TL_HIP_MATH(float, sqrtf, __builtin_sqrtf(x))
TL_HIP_MATH(float, tanhf, static_cast<float>(tl::library::tangent_hyperbolic(x)))
TL_HIP_MATH(float, sinhf, static_cast<float>(tl::library::sine_hyperbolic(x)))
TL_HIP_MATH(float, coshf, static_cast<float>(0.5 * (tl::library::exponential(x) + tl::library::exponential(-x))))
TL_HIP_MATH(float, erff, static_cast<float>(tl::library::error_function(x)))
TL_HIP_MATH(float, sinf, static_cast<float>(tl::library::circular(x, 0)))
TL_HIP_MATH(float, cosf, static_cast<float>(tl::library::circular(x, 1)))
TL_HIP_MATH(float, tanf, static_cast<float>(tl::library::circular(x, 0) / tl::library::circular(x, 1)))
TL_HIP_MATH(float, atanf, static_cast<float>(tl::library::angle(x, 1)))
TL_HIP_MATH(float, asinf, static_cast<float>(tl::library::angle(x, __builtin_sqrt((1.0 - x) * (1.0 + x)))))
TL_HIP_MATH(float, acosf, static_cast<float>(tl::library::angle(__builtin_sqrt((1.0 - x) * (1.0 + x)), x)))
TL_HIP_MATH(float, floorf, __builtin_floorf(x))
TL_HIP_MATH(float, ceilf, __builtin_ceilf(x))
TL_HIP_MATH(float, rintf, __builtin_rintf(x))
TL_HIP_MATH(float, roundf, __builtin_roundf(x))
TL_HIP_MATH(float, truncf, __builtin_truncf(x))
TL_HIP_MATH(float, fabsf, __builtin_fabsf(x))
TL_HIP_MATH(double, exp, tl::library::exponential(x))
TL_HIP_MATH(double, log, tl::library::logarithm(x))
TL_HIP_MATH(double, log2, tl::library::logarithm(x) * 1.44269504088896338700)
TL_HIP_MATH(double, log10, tl::library::logarithm(x) * 0.43429448190325181667)
TL_HIP_MATH(double, sqrt, __builtin_sqrt(x))
TL_HIP_MATH(double, floor, __builtin_floor(x))
TL_HIP_MATH(double, ceil, __builtin_ceil(x))
TL_HIP_MATH(double, rint, __builtin_rint(x))
TL_HIP_MATH(double, trunc, __builtin_trunc(x))
TL_HIP_MATH(double, fabs, __builtin_fabs(x))
#undef TL_HIP_MATH
#define TL_HIP_MATH(type, name, value) \
  static __device__ inline __attribute__((always_inline)) type name(type x, type y) { return value; }
TL_HIP_MATH(float, powf, tl::library::power(x, y))
TL_HIP_MATH(float, atan2f, static_cast<float>(tl::library::angle(x, y)))
TL_HIP_MATH(float, fmodf, tl::library::remainder(x, y))
TL_HIP_MATH(float, copysignf, __builtin_copysignf(x, y))
TL_HIP_MATH(float, fmaxf, __builtin_fmaxf(x, y))
TL_HIP_MATH(float, fminf, __builtin_fminf(x, y))
TL_HIP_MATH(double, copysign, __builtin_copysign(x, y))
TL_HIP_MATH(double, fmax, __builtin_fmax(x, y))
TL_HIP_MATH(double, fmin, __builtin_fmin(x, y))
#undef TL_HIP_MATH
static __device__ inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static __device__ inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

// double functions that library.h lacks: a compile error at the call instead of a link error.
#define TL_HIP_LACKS(name, ...)                                                                                    \
  __device__ __attribute__((error("AMD targets have no " #name " of double: compute it in float32"))) double name( \
      __VA_ARGS__);
TL_HIP_LACKS(exp2, double)
TL_HIP_LACKS(exp10, double)
TL_HIP_LACKS(log1p, double)
TL_HIP_LACKS(tanh, double)
TL_HIP_LACKS(sinh, double)
TL_HIP_LACKS(cosh, double)
TL_HIP_LACKS(erf, double)
TL_HIP_LACKS(sin, double)
TL_HIP_LACKS(cos, double)
TL_HIP_LACKS(tan, double)
TL_HIP_LACKS(asin, double)
TL_HIP_LACKS(acos, double)
TL_HIP_LACKS(atan, double)
TL_HIP_LACKS(pow, double, double)
TL_HIP_LACKS(atan2, double, double)
TL_HIP_LACKS(fmod, double, double)
#undef TL_HIP_LACKS
