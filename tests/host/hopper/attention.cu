// Attention for sm_90a as tile2cu writes it: TMA for K and V with a producer warp, wgmma with the probabilities in
// registers. Output = softmax(Q K^T / sqrt(dim)) V for each batch and head; tensors are (batch, seq_len, heads, dim).
#include "attention.h"

#include <tl/tl.h>
#include <tl/sm90/wgmma_half.h>

namespace attention_kernel {

// ---- sizes ----------------------------------------------------------------------------------------------------------
constexpr int dim = 128;
constexpr int block_M = 128;  // queries a block
constexpr int block_N = 128;  // keys a turn
// log2(e) / sqrt(dim): the kernel uses exp2
constexpr float scale = 0.1275174307460247f;
constexpr int num_stages = 2;
constexpr int threads = 256;

// ---- shared memory --------------------------------------------------------------------------------------------------
struct Shared {
  tl::SharedTile<tl::half, block_M, dim, tl::Swizzle128B> Q_shared;
  tl::SharedTile<tl::half, block_N, dim, tl::Swizzle128B> K_shared[num_stages];
  tl::SharedTile<tl::half, block_N, dim, tl::Swizzle128B> V_shared[num_stages];
  tl::TmaBarriers<num_stages> barriers;
};

// ---- registers ------------------------------------------------------------------------------------------------------
// of acc_s and acc_s_cast, which is operand A of the second product
using acc_s_layout = tl::WgmmaAccumulator<block_M, block_N, 2>;
using acc_o_layout = tl::WgmmaAccumulator<block_M, dim, 2>;
using scores_max_layout = tl::Slice<1, acc_s_layout>;

__global__ void __launch_bounds__(threads + tl::producer_threads, 1)
    kernel(const tl::half* __restrict__ Q_data, const __grid_constant__ tl::TensorMap K_map,
           const __grid_constant__ tl::TensorMap V_map, tl::half* __restrict__ Output_data, int batch, int seq_len,
           int heads) {
  const auto Q = tl::tensor<tl::Aligned<16>>(Q_data, batch, tl::predicated(seq_len), heads, dim);
  const auto Output = tl::tensor<tl::Aligned<16>>(Output_data, batch, tl::predicated(seq_len), heads, dim);
  auto& Q_shared = tl::shared<Shared>().Q_shared;
  auto& K_shared = tl::shared<Shared>().K_shared;
  auto& V_shared = tl::shared<Shared>().V_shared;
  const int bx = blockIdx.x, by = blockIdx.y, bz = blockIdx.z;

  auto load = [&](int k, tl::Barrier& full) {
    tl::tma_load(K_map, tl::at(bz, k * block_N, by, 0), K_shared[k % num_stages], full);
    tl::tma_load(V_map, tl::at(bz, k * block_N, by, 0), V_shared[k % num_stages], full);
  };
  const tl::TmaPipeline<num_stages, threads> pipeline(tl::shared<Shared>().barriers,
                                                      tl::bytes(K_shared[0], V_shared[0]));
  if (tl::thread() == 0) {
    pipeline.init();
    tl::mbarrier_init_fence();
  }
  tl::sync_threads();
  const int loop_range = tl::ceildiv(seq_len, block_N);
  if (tl::is_producer<threads>()) {
    if (tl::thread() == threads)
      for (int k = 0; k < loop_range; ++k) load(k, pipeline.producer_acquire(k));
    return;
  }

  tl::Fragment<float, acc_s_layout> acc_s;
  tl::Fragment<tl::half, acc_s_layout> acc_s_cast;
  tl::Fragment<float, acc_o_layout> acc_o;
  tl::Fragment<float, scores_max_layout> scores_max, scores_max_prev, scores_scale, scores_sum, logsum;

  tl::copy<threads>(Q(bz, tl::all, by, tl::all).tile(bx * block_M, 0), Q_shared);
  tl::fill(acc_o, 0.0f);
  tl::fill(logsum, 0.0f);
  tl::fill(scores_max, -tl::infinity<float>);
  tl::sync_consumers<threads>();

  for (int k = 0; k < loop_range; ++k) {
    pipeline.consumer_wait(k);
    tl::parallel(acc_s_layout{},
                 [&](auto i, auto j) { acc_s(i, j) = k * block_N + j < seq_len ? 0.0f : -tl::infinity<float>; });
    tl::gemm(Q_shared, tl::transposed(K_shared[k % num_stages]), acc_s);

    tl::copy(scores_max, scores_max_prev);
    tl::reduce_max<1>(acc_s, scores_max, tl::accumulate);
    tl::parallel(scores_max_layout{},
                 [&](auto i) { scores_scale(i) = tl::exp2(scores_max_prev(i) * scale - scores_max(i) * scale); });
    tl::parallel(acc_s_layout{},
                 [&](auto i, auto j) { acc_s(i, j) = tl::exp2(acc_s(i, j) * scale - scores_max(i) * scale); });
    tl::reduce_sum<1>(acc_s, scores_sum);
    tl::parallel(scores_max_layout{}, [&](auto i) { logsum(i) = logsum(i) * scores_scale(i) + scores_sum(i); });

    tl::copy(acc_s, acc_s_cast);
    tl::parallel(acc_o_layout{}, [&](auto i, auto j) { acc_o(i, j) *= scores_scale(i); });
    tl::gemm(acc_s_cast, V_shared[k % num_stages], acc_o);
    pipeline.consumer_release(k);
  }

  tl::parallel(acc_o_layout{}, [&](auto i, auto j) { acc_o(i, j) /= logsum(i); });
  tl::copy(acc_o, Output(bz, tl::all, by, tl::all).tile(bx * block_M, 0));
}

}  // namespace attention_kernel

extern "C" tl_status attention(const void* Q, const void* K, const void* V, void* Output, int batch, int seq_len,
                               int heads, void* stream) {
  using namespace attention_kernel;
  if (batch < 0 || seq_len < 0 || heads < 0) return TL_INVALID_SIZE;
  if (!tl::aligned<16>(Q, K, V, Output)) return TL_MISALIGNED;
  const dim3 grid(tl::ceildiv(seq_len, block_M), heads, batch);
  return tl::launch<Shared>(
      kernel, grid, threads + tl::producer_threads, stream, static_cast<const tl::half*>(Q),
      tl::tensor_map<decltype(Shared::K_shared[0]), tl::Dims<1, 3>>(K, batch, seq_len, heads, dim),
      tl::tensor_map<decltype(Shared::V_shared[0]), tl::Dims<1, 3>>(V, batch, seq_len, heads, dim),
      static_cast<tl::half*>(Output), batch, seq_len, heads);
}
