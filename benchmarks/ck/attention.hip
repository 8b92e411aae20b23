// ck_tile's attention forward with head dimension 128, as its generator (example/ck_tile/01_fmha) instantiates it:
// blocks of 128 queries and 128 keys, K brought to LDS directly, V with its rows in memory as ours has them.
#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue.hpp"
#include "ck_tile/ops/fmha.hpp"

using namespace ck_tile;
using Tile = sequence<128, 128, 32, 128, 32, 128>;
using Warps = sequence<4, 1, 1>;
using WarpTile = sequence<32, 32, 16>;
using Shape = TileFmhaShape<Tile, Warps, WarpTile, Warps, WarpTile, true>;
using Traits = TileFmhaTraits<true, false, true, true, BlockAttentionBiasEnum::NO_BIAS, false, false, false, false, -1>;
using Problem = BlockFmhaPipelineProblem<half_t, half_t, half_t, float, float, half_t, uint8_t, float, half_t, float,
                                         half_t, Shape, false, SimplifiedGenericAttentionMask<false>, Traits>;
using Epilogue = Default2DEpilogue<Default2DEpilogueProblem<float, half_t, true, true>>;
using Kernel = FmhaFwdKernel<FmhaFwdTilePartitioner_SHB<Shape>, BlockFmhaPipelineQRKSVSAsync<Problem>, Epilogue>;

// Tensors are (batch, length, heads, 128).
extern "C" __global__ void __launch_bounds__(Kernel::kBlockSize, Kernel::kBlockPerCu)
    attention(const half_t* q, const half_t* k, const half_t* v, half_t* o, int length, int heads, float scale) {
  Kernel::Kargs a{};
  a.q_ptr = q, a.k_ptr = k, a.v_ptr = v, a.o_ptr = o;
  a.seqlen_q = a.seqlen_k = length;
  a.hdim_q = a.hdim_v = 128;
  a.num_head_q = heads, a.nhead_ratio_qk = 1;
  a.scale_s = scale;
  a.stride_q = a.stride_k = a.stride_v = a.stride_o = heads * 128;
  a.nhead_stride_q = a.nhead_stride_k = a.nhead_stride_v = a.nhead_stride_o = 128;
  a.batch_stride_q = a.batch_stride_k = a.batch_stride_v = a.batch_stride_o = length * heads * 128;
  Kernel{}(a);
}
