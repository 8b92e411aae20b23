// C = max(A B, 0) for sm_90a as tile2cu writes it: TMA with a producer warp, wgmma, C out by TMA. TMA needs rows that
// start at multiples of 16 bytes, so K and N are multiples of 8, else TL_NOT_SUPPORTED.
#include "gemm_relu.h"

#include <tl/tl.h>
#include <tl/sm90/wgmma_half.h>

namespace gemm_relu_kernel {

// ---- sizes ----------------------------------------------------------------------------------------------------------
constexpr int block_M = 128, block_N = 256, block_K = 64;
constexpr int num_stages = 3;
constexpr int threads = 256;

// ---- shared memory --------------------------------------------------------------------------------------------------
struct Shared {
  tl::SharedTile<tl::half, block_M, block_K, tl::Swizzle128B> A_shared[num_stages];
  tl::SharedTile<tl::half, block_K, block_N, tl::Swizzle128B> B_shared[num_stages];
  // C_local on its way out: each warp stages its own rows  [epilogue.copy.tma-store]
  tl::StagingTile<tl::half, block_M, block_N, tl::Swizzle128B> C_staging;
  tl::TmaBarriers<num_stages> barriers;
};

// rows over 2 warpgroups, 64 at a time
using C_local_layout = tl::WgmmaAccumulator<block_M, block_N, 2>;

__global__ void __launch_bounds__(threads + tl::producer_threads, 1)
    kernel(const __grid_constant__ tl::TensorMap A_map, const __grid_constant__ tl::TensorMap B_map,
           const __grid_constant__ tl::TensorMap C_map, int M, int N, int K) {
  auto& A_shared = tl::shared<Shared>().A_shared;
  auto& B_shared = tl::shared<Shared>().B_shared;
  auto& C_staging = tl::shared<Shared>().C_staging;
  const int bx = blockIdx.x, by = blockIdx.y;

  // gemm_relu.py:21  for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
  auto load = [&](int ko, tl::Barrier& full) {
    // gemm_relu.py:22-23
    tl::tma_load(A_map, tl::at(by * block_M, ko * block_K), A_shared[ko % num_stages], full);
    tl::tma_load(B_map, tl::at(ko * block_K, bx * block_N), B_shared[ko % num_stages], full);
  };
  // initialises the barriers; one block barrier makes them visible to all threads
  const tl::TmaPipeline<num_stages, threads> pipeline(tl::shared<Shared>().barriers,
                                                      tl::bytes(A_shared[0], B_shared[0]));
  if (tl::thread() == 0) {
    pipeline.init();
    tl::mbarrier_init_fence();
  }
  tl::sync_threads();
  const int turns = tl::ceildiv(K, block_K);
  // One warp beyond the user's threads loads, up to num_stages tiles ahead of their use.
  if (tl::is_producer<threads>()) {
    if (tl::thread() == threads)
      for (int ko = 0; ko < turns; ++ko) load(ko, pipeline.producer_acquire(ko));
    return;
  }

  tl::Fragment<float, C_local_layout> C_local;
  tl::clear(C_local);

  // Each turn waits until TMA has filled slot ko % num_stages, and releases it, warp by warp, at its end.
  for (int ko = 0; ko < turns; ++ko) {
    pipeline.consumer_wait(ko);
    tl::gemm(A_shared[ko % num_stages], B_shared[ko % num_stages], C_local);  // wgmma; returns when the product is done
    pipeline.consumer_release(ko);
  }

  tl::parallel(C_local_layout{}, [&](auto i, auto j) { C_local(i, j) = tl::max(C_local(i, j), 0.0f); });

  // Each warp stages its rows, fences for TMA, and one lane stores them; returns when TMA has read the staging.
  tl::tma_store(C_local, C_staging, C_map, tl::at(by * block_M, bx * block_N));
}

}  // namespace gemm_relu_kernel

extern "C" tl_status gemm_relu(const void* A, const void* B, void* C, int M, int N, int K, void* stream) {
  using namespace gemm_relu_kernel;
  if (M < 0 || N < 0 || K < 0) return TL_INVALID_SIZE;
  if (!tl::aligned<16>(A, B, C)) return TL_MISALIGNED;
  if (K % 8 != 0 || N % 8 != 0) return TL_NOT_SUPPORTED;  // TMA: rows start at multiples of 16 bytes
  const dim3 grid(tl::ceildiv(N, block_N), tl::ceildiv(M, block_M));
  return tl::launch<Shared>(kernel, grid, threads + tl::producer_threads, stream,
                            tl::tensor_map<decltype(Shared::A_shared[0])>(A, M, K),
                            tl::tensor_map<decltype(Shared::B_shared[0])>(B, K, N),
                            tl::tensor_map<decltype(Shared::C_staging)>(C, M, N), M, N, K);
}
