import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F028]: `out_idx` names parameter 2; the kernel has 2 parameters
#  --> f028_out_idx.py:6:5
#   |
# 6 | def kernel(M, N, block_M=64):
#   |     ^^^^^^
