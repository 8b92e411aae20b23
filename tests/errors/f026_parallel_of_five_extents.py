import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M):
    @T.prim_func
    def main(A: T.Tensor((M, 2, 2, 2, 2), "float32")):
        with T.Kernel(M) as bx:
            for i, j, k, m, n in T.Parallel(1, 2, 2, 2, 2):
                A[bx + i, j, k, m, n] = 0

    return main

# ---- expected ----
# error[T2C-F026]: T.Parallel has at most 4 extents, not 5
#   --> f026_parallel_of_five_extents.py:10:13
#    |
# 10 |             for i, j, k, m, n in T.Parallel(1, 2, 2, 2, 2):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write the outer ones as loops of T.serial, or two of them as one
