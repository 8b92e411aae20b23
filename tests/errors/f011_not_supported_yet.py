import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            T.mma_gemm_blockscaled(A, B)

    return main

# ---- expected ----
# error[T2C-F011]: T.mma_gemm_blockscaled is not supported yet
#   --> f011_not_supported_yet.py:10:13
#    |
# 10 |             T.mma_gemm_blockscaled(A, B)
#    |             ^^^^^^^^^^^^^^^^^^^^^^
#   = help: it belongs to Blackwell's tensor memory, which tile2cu does not use: write T.gemm into a fragment
