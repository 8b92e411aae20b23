// The target architecture of this compilation.
#pragma once

namespace tl {
namespace cuda {

// 80, 89, 90, ...; 0 in the host pass.
#if defined(__CUDA_ARCH__)
constexpr int architecture = __CUDA_ARCH__ / 10;
#else
constexpr int architecture = 0;
#endif

}  // namespace cuda
}  // namespace tl
