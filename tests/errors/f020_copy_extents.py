import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            T.copy(A[bx * block_M : (bx + 1) * block_M, 0:64], A_shared)

    return main

# ---- expected ----
# error[T2C-F020]: T.copy from `A` (64, 64) to `A_shared` (64, 32): the shapes do not agree
#   --> f020_copy_extents.py:11:13
#    |
# 11 |             T.copy(A[bx * block_M : (bx + 1) * block_M, 0:64], A_shared)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: name the corner only, `A[0, 0]`: the box is then as large as the other side
