// CDNA has no mma.sync: kernels for AMD use the instructions of mfma.h.
#pragma once
#include "numeric.h"

namespace tl {

template <class D, class T> TL_DEVICE void mma_m16n8k16(D*, const uint32_t*, const uint32_t*, T) {
  static_assert(hip::lacks<D, T>, "CDNA has no mma.sync m16n8k16: emit the kernel for a hip target");
}
template <class D> TL_DEVICE void mma_m16n8k8_tf32(D*, const uint32_t*, const uint32_t*) {
  static_assert(hip::lacks<D>, "CDNA has no m16n8k8: emit the kernel for a hip target");
}
template <class D> TL_DEVICE void mma_m16n8k32_int8(D*, const uint32_t*, const uint32_t*) {
  static_assert(hip::lacks<D>, "CDNA has no m16n8k32: emit the kernel for a hip target");
}
template <class D, class T> TL_DEVICE void mma_sparse(D*, const uint32_t*, const uint32_t*, uint32_t, T) {
  static_assert(hip::lacks<D, T>, "CDNA has no mma.sp: emit the kernel for a cuda target");
}
struct Int4Instructions {
  static constexpr bool exist = false;
  static void mma_m16n8k64(int32_t* d, const uint32_t* a, const uint32_t* b, bool is_signed);
};
template <class D> TL_DEVICE void mma_m8n8k4_double(D*, double, double) {
  static_assert(hip::lacks<D>, "CDNA has no m8n8k4: emit the kernel for a hip target");
}

}  // namespace tl
