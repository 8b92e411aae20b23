// C[M, N] = A[M, K] * B[N, K]^T, half in and out, float accumulate: tile 64x128x64, one warpgroup multiplies (wgmma),
// one loads (TMA), three stages between memory barriers. The template argument plants one fault; comments name the lines
// that tests expect in findings.
#include <tl/sm90.h>
#include <tl/sm90/wgmma_half.h>

namespace gemm_sm90 {

enum Fault {
  none,
  one_warp_does_not_wait,
  released_too_early,
  init_without_barrier,
  wrong_parity,
  wgmma_never_waited,
  named_barrier_left_out,
  sync_threads_of_half_the_block
};

struct Shared {
  tl::half A[3][64 * 64];
  tl::half B[3][128 * 64];
  tl::half C[64 * 136];  // rows padded to 272 bytes
  tl::Barrier full[3], empty[3];
};

template <Fault fault>
__device__ __forceinline__ void produce(Shared& s, const tl::TensorMap& A, const tl::TensorMap& B, int m0, int n0,
                                        int turns) {
  for (int turn = 0; turn < turns; ++turn) {
    const int stage = turn % 3, parity = turn / 3 & 1;
    tl::mbarrier_wait(s.empty[stage], fault == wrong_parity ? parity : parity ^ 1);  // @wait_empty
    tl::mbarrier_arrive_expect(s.full[stage], (64 * 64 + 128 * 64) * 2);             // @expect_full
    tl::tma_load_box(s.A[stage], A, m0, turn * 64, s.full[stage]);                   // @load_A
    tl::tma_load_box(s.B[stage], B, n0, turn * 64, s.full[stage]);                   // @load_B
  }
}

template <Fault fault> __device__ __forceinline__ void multiply(Shared& s, float (&acc)[64], int turns) {
  for (int turn = 0; turn < turns; ++turn) {
    const int stage = turn % 3, parity = turn / 3 & 1;
    if (fault != one_warp_does_not_wait || tl::warp() != 3) tl::mbarrier_wait(s.full[stage], parity);  // @wait_full
    const uint64_t a = tl::wgmma_descriptor(s.A[stage], 16, 1024), b = tl::wgmma_descriptor(s.B[stage], 16, 1024);
    tl::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      tl::wgmma_m64<128>(acc, a + k * 2, b + k * 2, turn > 0 || k > 0, tl::half());  // @wgmma
    tl::wgmma_commit();
    if (fault == released_too_early) {
      if (tl::lane() == 0) tl::mbarrier_arrive(s.empty[stage]);
      tl::wgmma_wait<1>();
    } else {
      tl::wgmma_wait<1>();
      if (turn > 0 && tl::lane() == 0) tl::mbarrier_arrive(s.empty[(turn - 1) % 3]);  // @release
    }
  }
  if (fault != wgmma_never_waited) tl::wgmma_wait<0>();
}

template <Fault fault>
__global__ void __launch_bounds__(256, 1) kernel(const __grid_constant__ tl::TensorMap A,
                                                 const __grid_constant__ tl::TensorMap B, tl::half* C, int N, int K) {
  Shared& s = *static_cast<Shared*>(tl::shared_memory());
  const int m0 = blockIdx.y * 64, n0 = blockIdx.x * 128, turns = K / 64;
  if (tl::thread() == 0) {
    for (int i = 0; i < 3; ++i) {
      tl::mbarrier_init(s.full[i], 1);   // @init_full
      tl::mbarrier_init(s.empty[i], 4);  // @init_empty
    }
    tl::mbarrier_init_fence();
  }
  if (fault != init_without_barrier) tl::sync_threads();

  if (tl::warp() >= 4) {
    tl::warpgroup_reg_dealloc<40>();
    if (tl::thread() == 128) produce<fault>(s, A, B, m0, n0, turns);
    return;
  }
  tl::warpgroup_reg_alloc<232>();
  float acc[64];
  multiply<fault>(s, acc, turns);
#pragma unroll
  for (int i = 0; i < 64; i += 2) {
    const int r = tl::warp() * 16 + tl::lane() / 4 + i / 2 % 2 * 8, c = i / 4 * 8 + tl::lane() % 4 * 2;
    tl::store4(&s.C[r * 136 + c], tl::pack2(acc[i], acc[i + 1], tl::half()));  // @stage
  }
  if (fault == sync_threads_of_half_the_block) {
    tl::sync_threads();  // @late_sync
  } else if (fault != named_barrier_left_out) {
    tl::barrier_sync(1, 128);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int id = tl::thread() + i * 128, r = id / 16, c = id % 16;
    tl::store16(&C[size_t(m0 + r) * N + n0 + c * 8], tl::load16(&s.C[r * 136 + c * 8]));  // @epilogue
  }
}

template <Fault fault> int run(const void* A, const void* B, void* C, int M, int N, int K) {
  tl::TensorMap a, b;
  if (tl::tensor_map_16bit(a, A, M, K, K * 2, 64, 64, 128)) return -2;
  if (tl::tensor_map_16bit(b, B, N, K, K * 2, 128, 64, 128)) return -2;
  return tl::launch_kernel(kernel<fault>, dim3(N / 128, M / 64), dim3(256), sizeof(Shared), nullptr, a, b,
                           static_cast<tl::half*>(C), N, K);
}

}  // namespace gemm_sm90

extern "C" __attribute__((visibility("default"))) int gemm_sm90_run(int fault, const void* A, const void* B, void* C,
                                                                    int M, int N, int K) {
  using namespace gemm_sm90;
  switch (fault) {
    case none:
      return run<none>(A, B, C, M, N, K);
    case one_warp_does_not_wait:
      return run<one_warp_does_not_wait>(A, B, C, M, N, K);
    case released_too_early:
      return run<released_too_early>(A, B, C, M, N, K);
    case init_without_barrier:
      return run<init_without_barrier>(A, B, C, M, N, K);
    case wrong_parity:
      return run<wrong_parity>(A, B, C, M, N, K);
    case wgmma_never_waited:
      return run<wgmma_never_waited>(A, B, C, M, N, K);
    case named_barrier_left_out:
      return run<named_barrier_left_out>(A, B, C, M, N, K);
    case sync_threads_of_half_the_block:
      return run<sync_threads_of_half_the_block>(A, B, C, M, N, K);
  }
  return -1;
}
