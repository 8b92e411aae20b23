import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    size = 10**10**10

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F016]: an integer of about 40,000,000,000 bits is too large; at most 4,096 are held
#  --> f016_too_large.py:7:12
#   |
# 7 |     size = 10**10**10
#   |            ^^^^^^^^^^
