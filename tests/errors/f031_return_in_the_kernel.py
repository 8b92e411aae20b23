import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            T.copy(A[bx * block_M, 0], A_shared)
            return A_shared

    return main

# ---- expected ----
# error[T2C-F031]: `return` is inside T.Kernel, a loop or a branch
#   --> f031_return_in_the_kernel.py:12:13
#    |
# 12 |             return A_shared
#    |             ^^^^^^^^^^^^^^^
#   = help: write what follows into an `else`; results leave a kernel through its tensors
