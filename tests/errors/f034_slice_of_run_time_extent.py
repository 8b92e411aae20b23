import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16"), width: T.int32):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, :width] = A[bx, :width] * 2.0

    return main

# ---- expected ----
# error[T2C-F034]: an expression of tiles needs the extents of `A` as numbers
#   --> f034_slice_of_run_time_extent.py:10:29
#    |
# 10 |             B[bx, :width] = A[bx, :width] * 2.0
#    |                             ^^^^^^^^^^^^^^^^^^^
#   = help: take a slice of it: A[start : start + 64]
