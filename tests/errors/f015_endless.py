import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    while block_M:
        block_M += 1

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F015]: evaluating this file takes more than 200,000 steps
#  --> f015_endless.py:7:5
#   |
# 7 |     while block_M:
#   |     ^^^^^^^^^^^^^^
#   = help: loops of helpers and factories run at transpile time; use T.serial for loops of the kernel
