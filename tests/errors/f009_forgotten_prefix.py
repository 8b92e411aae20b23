import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            copy(A[bx * block_M, 0], A_shared)

    return main

# ---- expected ----
# error[T2C-F009]: `copy` is not defined
#   --> f009_forgotten_prefix.py:11:13
#    |
# 11 |             copy(A[bx * block_M, 0], A_shared)
#    |             ^^^^
#   = help: did you mean `T.copy`?
