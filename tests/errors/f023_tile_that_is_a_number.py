import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            A_shared = 0
            T.copy(A[bx * block_M, 0:32], B[bx * block_M, 0:32])
            T.reduce_sum(A_shared, A_shared, dim=1)

    return main

# ---- expected ----
# error[T2C-F023]: the source of T.reduce_sum must be a buffer, not the number 0
#   --> f023_tile_that_is_a_number.py:13:13
#    |
# 13 |             T.reduce_sum(A_shared, A_shared, dim=1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: T.fill(tile, value) fills a tile; `=` only gives the name another meaning
