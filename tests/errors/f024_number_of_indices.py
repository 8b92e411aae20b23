import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx] = A[bx, 0]

    return main

# ---- expected ----
# error[T2C-F024]: `B` of shape (M, N) takes 2 indices, not 1
#   --> f024_number_of_indices.py:10:13
#    |
# 10 |             B[bx] = A[bx, 0]
#    |             ^^^^^^^^^^^^^^^^
