// ck_tile's product C = A B^T, put together as its example example/ck_tile/03_gemm does. POLICY: how tiles lie in LDS.
#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue.hpp"
#include "ck_tile/ops/gemm.hpp"

using namespace ck_tile;
using Row = tensor_layout::gemm::RowMajor;
using Col = tensor_layout::gemm::ColumnMajor;
using Shape = TileGemmShape<sequence<128, 128, 32>, sequence<2, 2, 1>, sequence<32, 32, 8>>;
using Traits = TileGemmTraits<false, false, false, Row, Col, Row>;
using Problem = GemmPipelineProblem<half_t, half_t, float, Shape, Traits>;
using Pipeline = GemmPipelineAGmemBGmemCRegV1<Problem, POLICY>;
using Epilogue = Default2DEpilogue<Default2DEpilogueProblem<float, half_t, false, false>>;
using Kernel = GemmKernel<GemmTilePartitioner<Shape>, Pipeline, Epilogue>;

extern "C" __global__ void __launch_bounds__(256)
    gemm(const half_t* a, const half_t* b, half_t* c, int M, int N, int K) {
  Kernel{}({a, b, c, 1e-5f, M, N, K, K, K, N});
}
