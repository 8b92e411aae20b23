import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=0) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F023]: `threads` of T.Kernel must be at least 1, not 0
#  --> f023_no_threads.py:9:14
#   |
# 9 |         with T.Kernel(T.ceildiv(M, block_M), threads=0) as bx:
#   |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
