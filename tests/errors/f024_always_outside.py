import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 64), "float16")
            B_local = T.alloc_fragment((block_M, 64), "float16")
            T.copy(A[bx * block_M, 0], A_shared)
            for i, j in T.Parallel(block_M, 64):
                B_local[i, j] = A_shared[i, j + 64]
            T.copy(B_local, B[bx * block_M, 0])

    return main

# ---- expected ----
# error[T2C-F024]: index j + 64 runs from 64 to 127, outside of dimension 1 of `A_shared` of 64 elements
#   --> f024_always_outside.py:14:17
#    |
# 14 |                 B_local[i, j] = A_shared[i, j + 64]
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
