import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            T.atomic_store(B[0, 0], A[bx, 0])

    return main

# ---- expected ----
# error[T2C-F011]: T.atomic_store is not supported yet
#   --> f011_not_supported_yet.py:10:13
#    |
# 10 |             T.atomic_store(B[0, 0], A[bx, 0])
#    |             ^^^^^^^^^^^^^^
#   = help: let each block own its part of the output, or reduce in a second kernel
