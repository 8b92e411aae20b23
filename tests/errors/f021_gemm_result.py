import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 128), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm(A_shared, B_shared, C_local)

    return main

# ---- expected ----
# error[T2C-F021]: T.gemm: `A_shared` (64, 32) @ `B_shared` (32, 128) is (64, 128), but `C_local` is (64, 64)
#   --> f021_gemm_result.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_shared, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
