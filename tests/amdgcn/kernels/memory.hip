// Every way to memory that a compiler takes, one kernel each.
#include "standalone.h"
#define KERNEL extern "C" __global__ void
using int4v = int __attribute__((ext_vector_type(4)));

__device__ int4v raw_load(__amdgpu_buffer_rsrc_t, int, int, int) __asm("llvm.amdgcn.raw.ptr.buffer.load.v4i32");

// c[i] = a[i] for i < n in chunks of 16 bytes: the resource's record count keeps the rest out.
KERNEL buffer_copy(int* a, int* c, int n) {
  auto from = __builtin_amdgcn_make_buffer_rsrc(a, 0, n * 4, 0x00027000);
  auto to = __builtin_amdgcn_make_buffer_rsrc(c, 0, n * 4, 0x00027000);
  int at = (block() * 64 + thread()) * 4;
  for (int k = 0; k < 4; ++k)
    __builtin_amdgcn_raw_buffer_store_b32(__builtin_amdgcn_raw_buffer_load_b32(from, (at + k) * 4, 0, 0), to,
                                          (at + k) * 4, 0, 0);
}

KERNEL plain_ragged(const float* a, float* c, int n) {
  int i = block() * 256 + thread();
  if (i < n) c[i] = 2 * a[i];
}

// Bytes and 16-bit values, signed and unsigned.
KERNEL narrow(const signed char* a, const unsigned char* b, const short* c, const unsigned short* d, int* sum,
              short* out) {
  int i = thread();
  sum[i] = a[i] + b[i] + c[i] + d[i];
  out[i] = static_cast<short>(sum[i]);
}

KERNEL atomics(int* counter, float* total, unsigned* largest, int* order, unsigned long long* wide) {
  int i = block() * 256 + thread();
  order[__hip_atomic_fetch_add(counter, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)] = i;
  __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) float*)total, 0.5f);
  __hip_atomic_fetch_max(largest, static_cast<unsigned>(i * 7 % 1024), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(wide, 1ull << 32, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// A histogram in LDS by atomics.
KERNEL lds_atomics(const int* a, int* c) {
  __shared__ int bins[16];
  if (thread() < 16) bins[thread()] = 0;
  sync();
  __hip_atomic_fetch_add(&bins[a[thread()] & 15], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  sync();
  if (thread() < 16) c[thread()] = bins[thread()];
}

// An array that the compiler cannot keep in registers.
KERNEL scratch(const int* a, int* c) {
  volatile int local[32];
  for (int k = 0; k < 32; ++k) local[(k + thread()) & 31] = k;
  c[thread()] = local[a[thread()] & 31];
}

// A pointer that is to LDS in some lanes, to global memory in others.
KERNEL flat(const int* a, int* c) {
  __shared__ int s[256];
  s[thread()] = -thread();
  sync();
  const int* p = thread() % 3 ? a : s;
  c[thread()] = p[thread()];
}

// Each wave runs its loop another number of times, each lane too; then all meet at a barrier.
KERNEL divergent(const int* trips, int* c) {
  __shared__ int s[256];
  int total = 0;
  for (int k = 0; k < trips[thread()]; ++k) total += k * k;
  for (int k = 0; k < __builtin_amdgcn_readfirstlane(thread() / 64); ++k)
    total += __builtin_amdgcn_readfirstlane(total) & 1;
  s[thread()] = total;
  sync();
  c[thread()] = s[thread() ^ 64];
}

// Which thread of which block, in three dimensions, with sizes from the hidden arguments.
KERNEL ids(int* c) {
  int x = __builtin_amdgcn_workitem_id_x(), y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
  int bx = __builtin_amdgcn_workgroup_id_x(), by = __builtin_amdgcn_workgroup_id_y(),
      bz = __builtin_amdgcn_workgroup_id_z();
  int sx = __builtin_amdgcn_workgroup_size_x(), sy = __builtin_amdgcn_workgroup_size_y(),
      sz = __builtin_amdgcn_workgroup_size_z();
  int block_number = bx + 2 * (by + 3 * bz);
  c[block_number * sx * sy * sz + x + sx * (y + sy * z)] = block_number * 1000 + x * 100 + y * 10 + z;
}

struct Pair {
  int add;
  float scale;
};
KERNEL by_value(Pair pair, unsigned char flag, double factor, const float* a, float* c) {
  c[thread()] = flag ? (a[thread()] + pair.add) * pair.scale * static_cast<float>(factor) : -1;
}

KERNEL dynamic_lds(const int* a, int* c) {
  extern __shared__ int s[];
  s[thread()] = a[thread()];
  sync();
  c[thread()] = s[255 - thread()];
}

__constant__ int powers[8] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
KERNEL constants(const int* a, int* c) { c[thread()] = powers[a[thread()] & 7]; }

__device__ __attribute__((noinline)) int collatz(int n) {
  int steps = 0;
  while (n != 1) n = n & 1 ? 3 * n + 1 : n / 2, ++steps;
  return steps;
}
KERNEL calls(const int* a, int* c) { c[thread()] = collatz(a[thread()] + 1); }
