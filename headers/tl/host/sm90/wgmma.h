// wgmma on the CPU engine: as cuda/sm90/wgmma.h.
#pragma once
#include "../../common/tfloat32.h"
#include "../engine.h"
#include "../kernel.h"
#include "../memory.h"

namespace tl {

TL_DEVICE uint64_t wgmma_descriptor(const void* p, int leading_bytes, int stride_bytes, int swizzle_bytes = 128) {
  const uint64_t address = (shared_address(p) & 0x3ffff) >> 4;
  const uint64_t mode = swizzle_bytes == 128 ? 1 : swizzle_bytes == 64 ? 2 : swizzle_bytes == 32 ? 3 : 0;
  return address | uint64_t(leading_bytes / 16) << 16 | uint64_t(stride_bytes / 16) << 32 | mode << 62;
}
TL_DEVICE void wgmma_fence() { tl_engine_wgmma_fence(); }
TL_DEVICE void wgmma_commit() { tl_engine_wgmma_commit(); }
template <int n> TL_DEVICE void wgmma_wait() { tl_engine_wgmma_wait(n); }
template <int n> TL_DEVICE void pin_registers(float*) {}
template <int n, class Word> TL_DEVICE void pin_registers(Word*) {}
// Refers to the fragment's registers, so that the engine detects writes to them while an instruction is pending.
template <class T, int words> class WgmmaWords {
 public:
  TL_DEVICE explicit WgmmaWords(const T* from) : from_(from) {}
  TL_DEVICE const uint32_t (&four(int i) const)[4] { return reinterpret_cast<const uint32_t (*)[4]>(from_)[i]; }

 private:
  const T* from_;
};
template <int n> TL_DEVICE void warpgroup_reg_dealloc() {}
template <int n> TL_DEVICE void warpgroup_reg_alloc() {}

namespace host {
template <class Float8> constexpr int operand_type = Float8::is_e4m3 ? TL_ENGINE_E4M3 : TL_ENGINE_E5M2;
template <> inline constexpr int operand_type<half> = TL_ENGINE_HALF;
template <> inline constexpr int operand_type<bfloat16> = TL_ENGINE_BFLOAT16;
template <> inline constexpr int operand_type<float> = TL_ENGINE_TF32;
template <> inline constexpr int operand_type<tfloat32> = TL_ENGINE_TF32;
template <> inline constexpr int operand_type<int8_t> = TL_ENGINE_INT8;
template <> inline constexpr int operand_type<uint8_t> = TL_ENGINE_UINT8;
}  // namespace host

template <int n, bool a_mn = false, bool b_mn = false, class D, class T>
TL_DEVICE void wgmma_m64(D* d, uint64_t a, uint64_t b, bool accumulate, T) {
  tl_engine_wgmma_operation operation{};
  operation.a = a, operation.b = b, operation.a_mn = a_mn, operation.b_mn = b_mn;
  operation.n = n, operation.accumulate = accumulate, operation.type = host::operand_type<T>;
  operation.half_sums = std::is_same<D, half>::value;
  tl_engine_wgmma(d, &operation);
}
template <int n, bool b_mn = false, class D, class T>
TL_DEVICE void wgmma_m64(D* d, const uint32_t (&a)[4], uint64_t b, bool accumulate, T) {
  tl_engine_wgmma_operation operation{};
  operation.a_registers = a, operation.b = b, operation.b_mn = b_mn;
  operation.n = n, operation.accumulate = accumulate, operation.type = host::operand_type<T>;
  operation.half_sums = std::is_same<D, half>::value;
  tl_engine_wgmma(d, &operation);
}

}  // namespace tl
