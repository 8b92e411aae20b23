import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            S = T.alloc_shared((64, 64), "float16")
            T.ptx_cp_async(T.access_ptr(S[0, 0], "w", 1), T.access_ptr(A[bx, 0], "r", 1), 1)

    return main

# ---- expected ----
# error[T2C-F023]: T.ptx_cp_async copies 4, 8 or 16 bytes, not 2
#   --> f023_cp_async_of_two_bytes.py:11:13
#    |
# 11 |             T.ptx_cp_async(T.access_ptr(S[0, 0], "w", 1), T.access_ptr(A[bx, 0], "r", 1), 1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.copy
