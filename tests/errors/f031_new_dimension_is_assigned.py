import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0:4, None] = A[bx, 0]

    return main

# ---- expected ----
# error[T2C-F031]: `B` with a new dimension cannot be assigned to
#   --> f031_new_dimension_is_assigned.py:10:13
#    |
# 10 |             B[bx, 0:4, None] = A[bx, 0]
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: leave out the None
