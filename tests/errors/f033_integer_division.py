import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            half = bx / 2
            B[half, 0] = 0

    return main

# ---- expected ----
# error[T2C-F033]: `/` of two integers is not allowed in a kernel
#   --> f033_integer_division.py:10:20
#    |
# 10 |             half = bx / 2
#    |                    ^^^^^^
#   = help: write `//`, or cast with T.float32(...)
