import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=1024):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "float32"), B: T.Tensor((64, M), "float32")):
        with T.Kernel(T.ceildiv(M, 128), threads=128) as bx:
            for i, j in T.Parallel(128, 64):
                B[j, bx * 128 + i] = A[bx * 128 + i, j] * 2.0
    return main


# ---- expected ----
# warning[T2C-W004]: stores to `B` are not coalesced
#   --> w004_columns_across_a_warp.py:11:17
#    |
# 11 |                 B[j, bx * 128 + i] = A[bx * 128 + i, j] * 2.0
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: the lanes of a warp touch 64 sectors of 32 bytes; their elements fill 16
#   = help: index the last dimension of `B` with the last loop variable, or transpose a tile in shared memory
