import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    limit = open("limit.txt").read()

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F013]: `open` is not available
#  --> f013_not_available.py:7:13
#   |
# 7 |     limit = open("limit.txt").read()
#   |             ^^^^
#   = help: tile2cu reads the file without running it
