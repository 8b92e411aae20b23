import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A, B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F029]: the parameter `A` has no type
#  --> f029_no_annotation.py:8:14
#   |
# 8 |     def main(A, B: T.Tensor((M, N), "float16")):
#   |              ^
#   = help: write `A: T.Tensor(shape, dtype)`
