import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    half = block_M // (block_M - 64)

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F014]: `//` fails here: integer division or modulo by zero
#  --> f014_division_by_zero.py:7:12
#   |
# 7 |     half = block_M // (block_M - 64)
#   |            ^^^^^^^^^^^^^^^^^^^^^^^^^
