import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for i in T.Parallel(block_M):
                if A[bx, i] > 0:
                    break

    return main

# ---- expected ----
# error[T2C-F026]: `break` cannot be inside T.Parallel
#   --> f026_break_in_parallel.py:12:21
#    |
# 12 |                     break
#    |                     ^^^^^
#   = help: put the rest into an `if`
