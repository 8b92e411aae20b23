import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return M

# ---- expected ----
# error[T2C-F032]: `kernel` returns `M`, known only at run time, not a T.prim_func
#  --> f032_factory_without_kernel.py:6:5
#   |
# 6 | def kernel(M, N, block_M=64):
#   |     ^^^^^^
