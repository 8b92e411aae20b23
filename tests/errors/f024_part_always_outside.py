import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 64), "float16")
            B_local = T.alloc_fragment((block_M, 64), "float16")
            for k in T.serial(1, T.ceildiv(N, 64)):
                T.copy(A[bx * block_M, k * 64], A_shared[0, k * 32 : k * 32 + 64])
            T.copy(B_local, B[bx * block_M, 0])

    return main

# ---- expected ----
# error[T2C-F024]: a part of 64 elements at k * 32, which runs from 32 on, reaches outside of dimension 1 of `A_shared` of 64 elements
#   --> f024_part_always_outside.py:13:17
#    |
# 13 |                 T.copy(A[bx * block_M, k * 64], A_shared[0, k * 32 : k * 32 + 64])
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
