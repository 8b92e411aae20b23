import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            try:
                B[bx, 0] = A[bx, 0]
            except IndexError:
                pass

    return main

# ---- expected ----
# error[T2C-F012]: `try` is not supported here
#   --> f012_try.py:10:13
#    |
# 10 |             try:
#    |             ^^^^
#   = help: nothing is raised here that could be caught: leave the `try` out, or ask with `if` before
