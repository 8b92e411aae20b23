import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for i in T.Parallel(block_M, 32):
                B[bx, i] = A[bx, i]

    return main

# ---- expected ----
# error[T2C-F026]: this loop has 2 extents, but 1 name
#   --> f026_names_of_a_loop.py:10:13
#    |
# 10 |             for i in T.Parallel(block_M, 32):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
