import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm(A[0:64, 0:32], B[0:32, 0:64], C_local)

    return main

# ---- expected ----
# error[T2C-F023]: T.gemm: A is `A`, a tensor in global memory
#   --> f023_gemm_of_a_tensor.py:11:13
#    |
# 11 |             T.gemm(A[0:64, 0:32], B[0:32, 0:64], C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: copy it into a tile from T.alloc_shared first
