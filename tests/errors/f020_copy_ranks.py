import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            row = T.alloc_shared((block_M,), "float16")
            T.copy(A[bx * block_M : (bx + 1) * block_M, 0:2], row)

    return main

# ---- expected ----
# error[T2C-F020]: T.copy from `A` (64, 2) to `row` (64,): the shapes do not agree
#   --> f020_copy_ranks.py:11:13
#    |
# 11 |             T.copy(A[bx * block_M : (bx + 1) * block_M, 0:2], row)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: an index leaves its dimension out, as in `A[i, a:b]`; dimensions of extent 1 are left out too
