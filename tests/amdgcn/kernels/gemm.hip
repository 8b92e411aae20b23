// C = A B^T for A (M, K) and B (N, K), row-major, float16; M and N in 128s, K in 32s. A workgroup of four waves computes
// 128x128: tiles of A and B in LDS, rows padded to 80 bytes, and a wave its 64x64 by four v_mfma_f32_32x32x8_f16.
#include "standalone.h"

extern "C" __global__ void __launch_bounds__(256)
    gemm(const _Float16* A, const _Float16* B, float* C, int M, int N, int K) {
  __shared__ _Float16 As[128][40], Bs[128][40];
  int t = thread(), lane = t % 64, wave = t / 64;
  int row0 = __builtin_amdgcn_workgroup_id_y() * 128, col0 = block() * 128;
  int wm = wave / 2 * 64, wn = wave % 2 * 64;
  float16v acc[2][2] = {};
  for (int k0 = 0; k0 < K; k0 += 32) {
    for (int i = 0; i < 2; ++i) {
      int r = t / 4 + 64 * i, c = t % 4 * 8;
      *(half8*)&As[r][c] = *(const half8*)&A[(long)(row0 + r) * K + k0 + c];
      *(half8*)&Bs[r][c] = *(const half8*)&B[(long)(col0 + r) * K + k0 + c];
    }
    sync();
    for (int kk = 0; kk < 32; kk += 8) {
      half4 a[2], b[2];
      for (int i = 0; i < 2; ++i) {
        a[i] = *(half4*)&As[wm + 32 * i + lane % 32][kk + 4 * (lane / 32)];
        b[i] = *(half4*)&Bs[wn + 32 * i + lane % 32][kk + 4 * (lane / 32)];
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) acc[i][j] = __builtin_amdgcn_mfma_f32_32x32x8f16(a[i], b[j], acc[i][j], 0, 0, 0);
    }
    sync();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (int r = 0; r < 16; ++r) {
        int row = row0 + wm + 32 * i + 8 * (r / 4) + 4 * (lane / 32) + r % 4;
        C[(long)row * N + col0 + wn + 32 * j + lane % 32] = acc[i][j][r];
      }
}
