import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.copy(A[bx * 64, 0], A_shared)
            T.wgmma_gemm(A_shared, A_shared, C_local, transpose_B=True, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(C_local, B[bx * 64, 0])

    return main

# ---- expected ----
# error[T2C-S006]: sm_80 has no asynchronous MMAs, which T.wgmma_gemm starts
#   --> s006_products_that_run_by_themselves.py:13:13
#    |
# 13 |             T.wgmma_gemm(A_shared, A_shared, C_local, transpose_B=True, clear_accum=True)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.gemm, and leave T.wait_wgmma out
