import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as (bx, by):
            B[bx, by] = 0

    return main

# ---- expected ----
# error[T2C-F025]: T.Kernel has 1 grid extent, but 2 names
#  --> f025_names_of_the_grid.py:9:9
#   |
# 9 |         with T.Kernel(T.ceildiv(M, block_M)) as (bx, by):
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
