import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            with T.ws(2):
                T.copy(A[bx, 0:8], B[bx, 0:8])

    return main

# ---- expected ----
# error[T2C-F023]: T.ws counts groups of 128 threads; the block has 256 threads
#   --> f023_no_such_group.py:10:18
#    |
# 10 |             with T.ws(2):
#    |                  ^^^^^^^
