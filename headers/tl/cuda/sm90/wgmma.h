// wgmma: warpgroup MMA, m64nNkK. Accumulators are in registers, B in shared memory, A in either.
// [PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions: wgmma.mma_async"]
#pragma once
#include "../memory.h"
#include "wgmma_instructions.h"

namespace tl {

// A shared-memory matrix descriptor: start address, leading and stride byte offset in units of 16 bytes, and in bits
// 62-63 the swizzle mode: 1 for 128 bytes, 2 for 64, 3 for 32. The stride offset is between groups of 8 rows of one
// swizzle span. The leading offset is between neighbouring spans along M or N, for an MN-major operand; a K-major
// operand is within a span, and 32 bytes along K advance the address field by 2. [PTX ISA, "Matrix Descriptor
// Format"]
TL_DEVICE uint64_t wgmma_descriptor(const void* p, int leading_bytes, int stride_bytes, int swizzle_bytes = 128) {
  const uint64_t address = (shared_address(p) & 0x3ffff) >> 4;
  const uint64_t mode = swizzle_bytes == 128 ? 1 : swizzle_bytes == 64 ? 2 : swizzle_bytes == 32 ? 3 : 0;
  return address | uint64_t(leading_bytes / 16) << 16 | uint64_t(stride_bytes / 16) << 32 | mode << 62;
}

// Called by: every thread of the warpgroup.
// wgmma_fence: before the first wgmma, and whenever registers that a wgmma accesses were written by other instructions.
TL_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
TL_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most the n most recent groups are pending.
template <int n> TL_DEVICE void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory"); }

// An optimisation barrier for registers: the compiler moves no access to them across it. No instruction. Any thread.
template <int n> TL_DEVICE void pin_registers(float* r) {
  TL_UNROLL
  for (int i = 0; i < n; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int n, class Word> TL_DEVICE void pin_registers(Word* r) {
  TL_UNROLL
  for (int i = 0; i < n; ++i) asm volatile("" : "+r"(r[i])::"memory");
}
template <int n> TL_DEVICE void pin_registers(half* r) {  // two per register
  pin_registers<n / 2>(reinterpret_cast<uint32_t*>(r));
}

// A fragment as 32-bit register operands, two elements per word. The words are copies, which must not be written before
// the instructions that read them are complete. Any thread.
template <class T, int words> class WgmmaWords {
 public:
  TL_DEVICE explicit WgmmaWords(const T* from) {
    TL_UNROLL
    for (int i = 0; i < words; ++i) word_[i / 4][i % 4] = pack_bits(from[2 * i], from[2 * i + 1]);
    pin_registers<words>(&word_[0][0]);
  }
  // The A operand of one instruction.
  TL_DEVICE const uint32_t (&four(int i) const)[4] { return word_[i]; }

 private:
  uint32_t word_[words / 4][4];
};

// setmaxnreg: the register count per thread from here on (24..256, a multiple of 8): fewer for producers, more for
// consumers. Called by: every warp of a warpgroup, in a kernel with __launch_bounds__(threads, 1). [PTX ISA,
// "setmaxnreg"]
template <int n> TL_DEVICE void warpgroup_reg_dealloc() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(n));
}
template <int n> TL_DEVICE void warpgroup_reg_alloc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(n)); }

// d = a * b, or d += a * b with `accumulate`. n is a multiple of 8 up to 256; K is 32 bytes of T. d is float, int32_t
// for integers, or half for half, two elements per register.
// a_mn, b_mn: the 16-bit operand is MN-major instead of K-major. Element i of thread t is at row 16 * (t / 32) + t % 32
// / 4 + 8 * (i / 2 % 2), column 8 * (i / 4) + 2 * (t % 4) + i % 2.
// [PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", D]
template <int n, bool a_mn = false, bool b_mn = false, class D, class T>
TL_DEVICE void wgmma_m64(D* d, uint64_t a, uint64_t b, bool accumulate, T) {
  cuda::WgmmaInstruction<n, cuda::WgmmaOperand<T, D>>::template shared<a_mn, b_mn>(d, a, b, accumulate);
}
// The same with A in registers, two 16-bit elements each, the lower column in bits 0..15: register i of thread t holds
// row 16 * (t / 32) + t % 32 / 4 + 8 * (i % 2), columns 2 * (t % 4) + 8 * (i / 2) and the next.
// [same section, A]
template <int n, bool b_mn = false, class D, class T>
TL_DEVICE void wgmma_m64(D* d, const uint32_t (&a)[4], uint64_t b, bool accumulate, T) {
  cuda::WgmmaInstruction<n, cuda::WgmmaOperand<T, D>>::template registers<b_mn>(d, a, b, accumulate);
}

}  // namespace tl
