// Kernels with one fault each, and their twins without it. A block has 256 threads: four waves.
// Each line that a finding must name ends in a comment: <kernel>: first or other end.
#include "standalone.h"
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define LDS __attribute__((address_space(3)))

KERNEL reverse(const float* a, float* c) {
  __shared__ float s[256];
  s[thread()] = a[thread()];
  sync();
  c[thread()] = s[255 - thread()];
}

KERNEL no_barrier(const float* a, float* c) {
  __shared__ float s[256];
  volatile float* p = s;
  p[thread()] = a[thread()];  // no_barrier: other
  __builtin_amdgcn_wave_barrier();
  c[thread()] = p[255 - thread()];  // no_barrier: first
}

// The first read's bytes are overwritten by other waves: the second barrier is missing.
KERNEL no_second_barrier(const float* a, float* c) {
  __shared__ float s[256];
  volatile float* p = s;
  p[thread()] = a[thread()];
  sync();
  float read = p[255 - thread()];  // no_second_barrier: first
  p[thread()] = read + 1;          // no_second_barrier: other
  c[thread()] = read;
}

// A wave that votes again overwrites its vote while others read it: the barrier before the write is missing.
KERNEL vote_of_one_barrier(const float* a, float* c) {
  __shared__ int votes[4];
  volatile int* p = votes;
  int yes = 0;
  for (int k = 0; k < 2; ++k) {
    const int in_wave = __builtin_popcountll(__builtin_amdgcn_ballot_w64(a[thread()] > k));
    if (thread() % 64 == 0) p[thread() / 64] = in_wave;  // vote_of_one_barrier: other
    sync();
    yes += p[0] + p[1] + p[2] + p[3];  // vote_of_one_barrier: first
  }
  c[thread()] = static_cast<float>(yes);
}

// All waves write the same 64 floats.
KERNEL write_write(const float* a, float* c) {
  __shared__ float s[64];
  volatile float* p = s;
  p[thread() % 64] = a[thread()];  // write_write: first
  sync();
  c[thread()] = p[thread() % 64];
}

KERNEL store_outside(const float* a, float* c) {
  c[thread() + 1] = a[thread()];  // store_outside: first
}

KERNEL load_outside(const float* a, float* c) {
  c[thread()] = a[thread() + 4];  // load_outside: first
}

KERNEL load_before(const float* a, float* c) {
  c[thread()] = a[thread() - 1];  // load_before: first
}

KERNEL lds_outside(const float* a, float* c) {
  __shared__ float s[256];
  s[thread()] = a[thread()];
  sync();
  int far = 256 + thread();
  asm volatile("" : "+v"(far));
  c[thread()] = s[far];  // lds_outside: first
}

KERNEL lds_uninitialized(const float* a, float* c) {
  __shared__ float s[512];
  volatile float* p = s;
  p[thread()] = a[thread()];
  sync();
  c[thread()] = p[256 + thread()];  // lds_uninitialized: first
}

// A load by hand, used without waiting for it; its twin waits.
#define LOAD_BY_HAND(wait, where)                                                                     \
  float v;                                                                                            \
  asm volatile("global_load_dword %0, %1, %2" wait : "=v"(v) : "v"(thread() * 4), "s"(a) : "memory"); \
  c[255 - thread()] = v;
KERNEL load_not_awaited(const float* a, float* c){
    LOAD_BY_HAND("", )  // load_not_awaited: first other
} KERNEL load_awaited(const float* a, float* c){LOAD_BY_HAND("\n s_waitcnt vmcnt(0)", )}

// A load straight to LDS that is still in flight when the barrier is passed; its twin waits first.
__device__ inline __attribute__((always_inline)) LDS float* to_lds(const float* a, float* s) {
  int wave = __builtin_amdgcn_readfirstlane(thread() / 64);
  LDS float* q = (LDS float*)s + 64 * wave;
  asm volatile("s_mov_b32 m0, %0\n s_nop 0\n global_load_lds_dword %1, %2" ::"s"((unsigned)(unsigned long)q),
               "v"(thread() * 4), "s"(a)
               : "memory");
  return q;
}
KERNEL dma_not_awaited(const float* a, float* c) {
  __shared__ float s[256];
  to_lds(a, s);
  asm volatile("s_barrier" ::: "memory");
  c[thread()] = ((volatile float*)s)[255 - thread()];  // dma_not_awaited: first
}
KERNEL dma_awaited(const float* a, float* c) {
  __shared__ float s[256];
  to_lds(a, s);
  asm volatile("s_waitcnt vmcnt(0)\n s_barrier" ::: "memory");
  c[thread()] = ((volatile float*)s)[255 - thread()];
}

// An LDS write that may happen after the barrier: nothing waited for it. Its twin has the wait.
KERNEL lds_write_not_awaited(const float* a, float* c) {
  __shared__ float s[256];
  unsigned at = (unsigned)(unsigned long)(LDS float*)s + thread() * 4;
  float v = a[thread()];
  asm volatile("s_waitcnt vmcnt(0)\n ds_write_b32 %0, %1\n s_barrier" ::"v"(at), "v"(v) : "memory");
  c[thread()] = ((volatile float*)s)[255 - thread()];  // lds_write_not_awaited: first
}
KERNEL lds_write_awaited(const float* a, float* c) {
  __shared__ float s[256];
  unsigned at = (unsigned)(unsigned long)(LDS float*)s + thread() * 4;
  float v = a[thread()];
  asm volatile("s_waitcnt vmcnt(0)\n ds_write_b32 %0, %1\n s_waitcnt lgkmcnt(0)\n s_barrier" ::"v"(at), "v"(v)
               : "memory");
  c[thread()] = ((volatile float*)s)[255 - thread()];
}
