import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for k in T.serial(N):
                break

    return main

# ---- expected ----
# error[T2C-F012]: `break` is not supported in a kernel
#   --> f012_break.py:11:17
#    |
# 11 |                 break
#    |                 ^^^^^
#   = help: put the rest into an `if`
