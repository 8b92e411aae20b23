// C[M, N] = A[M, K] * B[K, N], half in, float accumulate and out: tile 128x128x32, 2x2 warps, three cp.async stages.
// The template argument plants one fault; lines that a test expects in a finding carry an anchor comment.
#include <tl/tl.h>

namespace gemm_sm80 {

enum Fault {
  none,
  no_sync,
  loose_wait,
  wrong_stage,
  row_too_far,
  overlapping_blocks,
  diverged_mma,
  no_swizzle,
  uncoalesced
};

struct Shared {
  tl::half A[3][128 * 32];  // rows of 64 bytes, 64-byte swizzle
  tl::half B[3][32 * 128];  // rows of 256 bytes, 128-byte swizzle
};

template <Fault fault> __device__ __forceinline__ int chunk_of_A(int row, int chunk) {
  return fault == no_swizzle ? chunk : chunk ^ (row / 2 & 3);
}
template <Fault fault> __device__ __forceinline__ int chunk_of_B(int row, int chunk) {
  return fault == no_swizzle ? chunk : chunk ^ (row & 7);
}

template <Fault fault>
__device__ __forceinline__ void load_stage(Shared& s, int stage, const tl::half* A, const tl::half* B, int m0, int n0,
                                           int k0, int N, int K) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int id = tl::thread() + i * 128, r = id / 4, c = id % 4;
    const tl::half* from = &A[size_t(m0 + r) * K + k0 + c * 8];
    tl::cp_async<16>(&s.A[stage][r * 32 + chunk_of_A<fault>(r, c) * 8], from, 16);  // @load_A
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int id = tl::thread() + i * 128;
    int r = fault == uncoalesced ? id % 32 : id / 16;
    const int c = fault == uncoalesced ? id / 32 : id % 16;
    if (fault == row_too_far) r += k0 + 32 == K ? 1 : 0;
    const tl::half* from = &B[size_t(k0 + r) * N + n0 + c * 8];
    tl::cp_async<16>(&s.B[stage][(r % 32) * 128 + chunk_of_B<fault>(r, c) * 8], from, 16);  // @load_B
  }
}

template <Fault fault>
__global__ void __launch_bounds__(128) kernel(const tl::half* A, const tl::half* B, float* C, int N, int K) {
  Shared& s = *static_cast<Shared*>(tl::shared_memory());
  const int lane = tl::lane(), warp = tl::warp();
  const int m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
  const int wm = warp / 2 * 64, wn = warp % 2 * 64;
  float acc[4][8][4] = {};

  const int turns = K / 32;
  for (int turn = 0; turn < 2; ++turn) {
    load_stage<fault>(s, turn, A, B, m0, n0, turn * 32, N, K);
    tl::cp_async_commit();
  }
  for (int turn = 0; turn < turns; ++turn) {
    tl::cp_async_wait<fault == loose_wait ? 2 : 1>();
    if (fault != no_sync) tl::sync_threads();
    const int stage = turn % 3;
#pragma unroll
    for (int kk = 0; kk < 2; ++kk) {
      uint32_t a[4][4], b[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int r = wm + i * 16 + lane % 16, c = kk * 2 + lane / 16;
        tl::ldmatrix_x4(a[i], &s.A[stage][r * 32 + chunk_of_A<fault>(r, c) * 8]);  // @read_A
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int r = kk * 16 + lane % 16, c = (wn + j * 16) / 8 + lane / 16;
        tl::ldmatrix_x4_trans(b[j], &s.B[stage][r * 128 + chunk_of_B<fault>(r, c) * 8]);  // @read_B
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          if (fault == diverged_mma && kk == 1 && lane >= 16 && turn == turns - 1) break;
          tl::mma_m16n8k16(acc[i][j], a[i], &b[j / 2][j % 2 * 2], tl::half());  // @mma
        }
    }
    const int next = fault == wrong_stage ? (turn + 1) % 3 : (turn + 2) % 3;
    if (turn + 2 < turns) load_stage<fault>(s, next, A, B, m0, n0, (turn + 2) * 32, N, K);
    tl::cp_async_commit();
  }
  tl::cp_async_wait<0>();
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      int r = m0 + wm + i * 16 + lane / 4;
      const int c = n0 + wn + j * 8 + lane % 4 * 2;
      if (fault == overlapping_blocks && wm == 0 && blockIdx.y == 1 && i == 0) r -= 8;
      uint2 low, high;
      __builtin_memcpy(&low, &acc[i][j][0], 8);
      __builtin_memcpy(&high, &acc[i][j][2], 8);
      tl::store8(&C[size_t(r) * N + c], low);       // @store_low
      tl::store8(&C[size_t(r + 8) * N + c], high);  // @store_high
    }
}

template <Fault fault> int run(const void* A, const void* B, void* C, int M, int N, int K) {
  return tl::launch_kernel(kernel<fault>, dim3(N / 128, M / 128), dim3(128), sizeof(Shared), nullptr,
                           static_cast<const tl::half*>(A), static_cast<const tl::half*>(B), static_cast<float*>(C), N,
                           K);
}

}  // namespace gemm_sm80

extern "C" __attribute__((visibility("default"))) int gemm_sm80_run(int fault, const void* A, const void* B, void* C,
                                                                    int M, int N, int K) {
  using namespace gemm_sm80;
  switch (fault) {
    case none:
      return run<none>(A, B, C, M, N, K);
    case no_sync:
      return run<no_sync>(A, B, C, M, N, K);
    case loose_wait:
      return run<loose_wait>(A, B, C, M, N, K);
    case wrong_stage:
      return run<wrong_stage>(A, B, C, M, N, K);
    case row_too_far:
      return run<row_too_far>(A, B, C, M, N, K);
    case overlapping_blocks:
      return run<overlapping_blocks>(A, B, C, M, N, K);
    case diverged_mma:
      return run<diverged_mma>(A, B, C, M, N, K);
    case no_swizzle:
      return run<no_swizzle>(A, B, C, M, N, K);
    case uncoalesced:
      return run<uncoalesced>(A, B, C, M, N, K);
  }
  return -1;
}
