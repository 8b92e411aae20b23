// MFMA instructions of the matrix cores. Called by: every lane of the wave, at the same call.
// [AMD Instinct MI200, MI300 and CDNA4 ISA, "Matrix Arithmetic Instructions"; clang, "AMDGPU builtins"]
#pragma once
#include "../common/base.h"
#include "../common/vec.h"

namespace tl {
namespace hip {

template <class T, int n> using Lanes = T __attribute__((ext_vector_type(n)));

template <class To, class From> TL_DEVICE To bits_of(const From* items) {
  To bits;
  __builtin_memcpy(&bits, items, sizeof bits);
  return bits;
}

// The bytes along K that each lane passes to the widest instruction, for 16-bit and 8-bit types.
#if defined(__gfx950__)
constexpr int mfma_bytes_16bit = 16, mfma_bytes_8bit = 16, mfma_items_float8 = 32;
#elif defined(__gfx90a__)
constexpr int mfma_bytes_16bit = 8, mfma_bytes_8bit = 4, mfma_items_float8 = 8;
#else
constexpr int mfma_bytes_16bit = 8, mfma_bytes_8bit = 8, mfma_items_float8 = 8;
#endif

}  // namespace hip

// Sets the wave's priority: waves of a higher priority, 0 to 3, issue first on their SIMD. A scheduling boundary
// for the compiler. Called by: each wave. [AMD Instinct MI300 ISA, "S_SETPRIO"]
template <int priority> TL_DEVICE void set_wave_priority() {
  static_assert(priority >= 0 && priority <= 3, "a wave's priority is 0 to 3");
  __builtin_amdgcn_s_setprio(priority);
}

// Transposing read: each group of 16 lanes reads rows of 16 elements, 8 bytes per lane. 2-byte elements: lane l reads
// four of row l / 4, from column 4 * (l % 4) on; 1-byte elements: eight of row l / 2. Lane l receives column l of the
// four or eight rows. The address is a multiple of 8 in shared memory. Called by: every lane of the wave.
// [AMD CDNA4 ISA, "DS_READ_B64_TR_B16", "DS_READ_B64_TR_B8"]
#if defined(__gfx950__)
template <class T> constexpr bool has_transposing_reads = sizeof(T) <= 2 && !is_packed<T>;
template <class T> TL_DEVICE auto load_transposed(const T* from) {
  using Bits = std::conditional_t<sizeof(T) == 2, hip::Lanes<int16_t, 4>, hip::Lanes<int32_t, 2>>;
  auto* const shared = (__attribute__((address_space(3))) Bits*)const_cast<T*>(from);
  if constexpr (sizeof(T) == 2)
    return bit_cast<Vec<T, 4>>(__builtin_amdgcn_ds_read_tr16_b64_v4i16(shared));
  else
    return bit_cast<Vec<T, 8>>(__builtin_amdgcn_ds_read_tr8_b64_v2i32(shared));
}
#else
template <class T> constexpr bool has_transposing_reads = false;
template <class T> TL_DEVICE Vec<T, 8 / sizeof(T)> load_transposed(const T*) {
  static_assert(hip::lacks<T>, "transposing reads of shared memory require gfx950");
  return {};
}
#endif

// Loads `bytes` bytes of shared memory, aligned to their number, to registers by one access. Any thread.
template <int bytes> TL_DEVICE void load_bits_to(void* to, const void* from) {
  __builtin_memcpy(to, __builtin_assume_aligned(from, bytes), bytes);
}

// The number of consecutive elements along K that each lane passes to the widest instruction for a type.
template <class T>
constexpr int mfma_items = sizeof(T) == 1   ? hip::mfma_bytes_8bit
                           : sizeof(T) == 2 ? hip::mfma_bytes_16bit / 2
                                            : 1;
#if defined(__gfx942__)
template <> inline constexpr int mfma_items<tfloat32> = 2;  // xf32
#endif
// 8-bit floating-point types without instructions are converted to half, which represents them exactly.
template <int m, int b, int h, bool is_fnuz>
constexpr int mfma_items<Float8<m, b, h, is_fnuz>> =
    Float8Instructions::exist<is_fnuz> ? hip::mfma_items_float8 : mfma_items<half>;

// D += A B with `size` rows and columns, and 64 / size * n of K. Lane l holds n elements of row l % size of A and of
// column l % size of B, from n * (l / size) on along K. Element i of d is in column l % size, row 4 * (l / size + 64 /
// size * (i / 4)) + i % 4; for double in row l / size + 4 i.
#if !defined(__HIP_DEVICE_COMPILE__)
// Host pass: the target is unknown, and nothing is called.
template <int size, int n, class Result, class A, class B> TL_DEVICE void mfma(Result* d, const A* a, const B* b);
#else
#define TL_HIP_MFMA_OF_TWO(size_, n_, Result, A, B, Operand, builtin)                                       \
  template <int size, int n>                                                                                \
  TL_DEVICE std::enable_if_t<size == size_ && n == n_> mfma(Result* d, const A* a, const B* b) {            \
    using D = hip::Lanes<Result, size_ * size_ / 64>;                                                       \
    const D sum = builtin(hip::bits_of<Operand>(a), hip::bits_of<Operand>(b), hip::bits_of<D>(d), 0, 0, 0); \
    __builtin_memcpy(d, &sum, sizeof sum);                                                                  \
  }
#define TL_HIP_MFMA(size, n, Result, Element, Operand, builtin) \
  TL_HIP_MFMA_OF_TWO(size, n, Result, Element, Element, Operand, builtin)
using HipHalf4 = hip::Lanes<_Float16, 4>;
using HipShort4 = hip::Lanes<int16_t, 4>;
TL_HIP_MFMA(16, 4, float, half, HipHalf4, __builtin_amdgcn_mfma_f32_16x16x16f16)
TL_HIP_MFMA(32, 4, float, half, HipHalf4, __builtin_amdgcn_mfma_f32_32x32x8f16)
TL_HIP_MFMA(16, 4, float, bfloat16, HipShort4, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k)
TL_HIP_MFMA(32, 4, float, bfloat16, HipShort4, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
TL_HIP_MFMA(16, 1, float, float, float, __builtin_amdgcn_mfma_f32_16x16x4f32)
TL_HIP_MFMA(32, 1, float, float, float, __builtin_amdgcn_mfma_f32_32x32x2f32)
TL_HIP_MFMA(16, 1, double, double, double, __builtin_amdgcn_mfma_f64_16x16x4f64)
#if defined(__gfx942__)
using HipFloat2 = hip::Lanes<float, 2>;
TL_HIP_MFMA(16, 2, float, tfloat32, HipFloat2, __builtin_amdgcn_mfma_f32_16x16x8_xf32)
TL_HIP_MFMA(32, 2, float, tfloat32, HipFloat2, __builtin_amdgcn_mfma_f32_32x32x4_xf32)
#endif
TL_HIP_MFMA(16, 1, float, tfloat32, float, __builtin_amdgcn_mfma_f32_16x16x4f32)
#if defined(__gfx90a__)
TL_HIP_MFMA(16, 4, int32_t, int8_t, int32_t, __builtin_amdgcn_mfma_i32_16x16x16i8)
TL_HIP_MFMA(32, 4, int32_t, int8_t, int32_t, __builtin_amdgcn_mfma_i32_32x32x8i8)
#else
TL_HIP_MFMA(16, 8, int32_t, int8_t, int64_t, __builtin_amdgcn_mfma_i32_16x16x32_i8)
TL_HIP_MFMA(32, 8, int32_t, int8_t, int64_t, __builtin_amdgcn_mfma_i32_32x32x16_i8)
#endif
#if defined(__gfx950__)
using HipHalf8 = hip::Lanes<_Float16, 8>;
using HipBfloat8 = hip::Lanes<__bf16, 8>;
using HipInt4 = hip::Lanes<int32_t, 4>;
TL_HIP_MFMA(16, 8, float, half, HipHalf8, __builtin_amdgcn_mfma_f32_16x16x32_f16)
TL_HIP_MFMA(32, 8, float, half, HipHalf8, __builtin_amdgcn_mfma_f32_32x32x16_f16)
TL_HIP_MFMA(16, 8, float, bfloat16, HipBfloat8, __builtin_amdgcn_mfma_f32_16x16x32_bf16)
TL_HIP_MFMA(32, 8, float, bfloat16, HipBfloat8, __builtin_amdgcn_mfma_f32_32x32x16_bf16)
TL_HIP_MFMA(16, 16, int32_t, int8_t, HipInt4, __builtin_amdgcn_mfma_i32_16x16x64_i8)
TL_HIP_MFMA(32, 16, int32_t, int8_t, HipInt4, __builtin_amdgcn_mfma_i32_32x32x32_i8)
#endif
// The fp8 and bf8 instructions use FNUZ formats on gfx942, OCP formats on gfx950.
#if defined(__gfx942__) || defined(__gfx950__)
using HipE4m3 = std::conditional_t<float8_e4m3::has_instructions, float8_e4m3, float8_e4m3fnuz>;
using HipE5m2 = std::conditional_t<float8_e5m2::has_instructions, float8_e5m2, float8_e5m2fnuz>;
TL_HIP_MFMA(16, 8, float, HipE4m3, int64_t, __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8)
TL_HIP_MFMA(32, 8, float, HipE4m3, int64_t, __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8)
TL_HIP_MFMA(16, 8, float, HipE5m2, int64_t, __builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8)
TL_HIP_MFMA(32, 8, float, HipE5m2, int64_t, __builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8)
TL_HIP_MFMA_OF_TWO(16, 8, float, HipE4m3, HipE5m2, int64_t, __builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8)
TL_HIP_MFMA_OF_TWO(32, 8, float, HipE4m3, HipE5m2, int64_t, __builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8)
TL_HIP_MFMA_OF_TWO(16, 8, float, HipE5m2, HipE4m3, int64_t, __builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8)
TL_HIP_MFMA_OF_TWO(32, 8, float, HipE5m2, HipE4m3, int64_t, __builtin_amdgcn_mfma_f32_32x32x16_bf8_fp8)
#endif
template <class A, class B> constexpr bool hip_has_float8 = false;
template <int m, int b, int h, bool f, int m2, int b2, int h2, bool f2>
constexpr bool hip_has_float8<Float8<m, b, h, f>, Float8<m2, b2, h2, f2>> =
    Float8Instructions::exist<f> && Float8Instructions::exist<f2>;
#if defined(__gfx950__)
// 32 bytes per lane: constant zero scales select the unscaled instruction. 16 bytes per lane: two instructions of 8.
template <class T> constexpr int hip_f8f6f4 = std::is_same<T, HipE4m3>::value ? 0 : 1;  // cbsz and blgp
template <int size, int n, class A, class B>
TL_DEVICE std::enable_if_t<n == 32 && hip_has_float8<A, B>> mfma(float* d, const A* a, const B* b) {
  static_assert(size == 16, "f8f6f4 is used with tl::Mfma16x16");
  using D = hip::Lanes<float, 4>;
  using Operand = hip::Lanes<int32_t, 8>;
  const D sum = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(
      hip::bits_of<Operand>(a), hip::bits_of<Operand>(b), hip::bits_of<D>(d), hip_f8f6f4<A>, hip_f8f6f4<B>, 0, 0, 0, 0);
  __builtin_memcpy(d, &sum, sizeof sum);
}
template <int size, int n, class A, class B>
TL_DEVICE std::enable_if_t<n == 16 && hip_has_float8<A, B>> mfma(float* d, const A* a, const B* b) {
  mfma<size, 8>(d, a, b);
  mfma<size, 8>(d, a + 8, b + 8);
}
#endif
#undef TL_HIP_MFMA
#undef TL_HIP_MFMA_OF_TWO
template <int size, int n, class A, class B>
TL_DEVICE std::enable_if_t<is_float8<A> && !hip_has_float8<A, B>> mfma(float* d, const A* a, const B* b) {
  const auto wide_a = convert<half>(hip::bits_of<Vec<A, n>>(a)), wide_b = convert<half>(hip::bits_of<Vec<B, n>>(b));
  mfma<size, n>(d, wide_a.at, wide_b.at);
}
#endif

}  // namespace tl
