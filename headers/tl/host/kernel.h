// CUDA's keywords, vector types and built-in variables for a C++ compiler on a CPU.
#pragma once
#include <cstddef>
#include <cstdint>

#include "engine.h"

#define TL_HOST 1
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
// __noinline__ stays undefined: libstdc++ spells an attribute with it.

// All device functions are inlined: findings attribute inlined frames to the line of the emitted source.
#ifndef TL_DEVICE
#define TL_DEVICE __attribute__((always_inline)) inline
#endif
#define TL_INLINED_LAMBDA __attribute__((always_inline))

// With -fsanitize=thread the compiler instruments each plain load and store; the engine, not libtsan, receives the
// calls.
#if defined(__SANITIZE_THREAD__)
#define TL_ENGINE_INSTRUMENTED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TL_ENGINE_INSTRUMENTED 1
#endif
#endif

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// Thread-local in the OS thread; the engine sets them at each switch between fibers. With initial-exec a read is one
// instruction, but the static TLS that all dlopen-ed libraries share is small, so only these variables use it.
// __thread, unlike thread_local, needs no test for a dynamic initialiser at each use.
#define TL_ENGINE_VARIABLE extern __thread __attribute__((tls_model("initial-exec")))
TL_ENGINE_VARIABLE uint3 threadIdx, blockIdx;
TL_ENGINE_VARIABLE dim3 blockDim, gridDim;
TL_ENGINE_VARIABLE int tl_engine_thread;  // linear index in the block

#ifndef TL_WARP_SIZE
#define TL_WARP_SIZE 32  // 64 for kernels emitted for AMD's wave64
#endif

namespace tl {
constexpr int warp_size = TL_WARP_SIZE;
TL_DEVICE int thread_of_block() { return tl_engine_thread; }
TL_DEVICE void note_tile(int x, int y, int z) {
  tl_engine_note_tile(static_cast<uint32_t>(x), static_cast<uint32_t>(y), static_cast<uint32_t>(z));
}
}  // namespace tl
