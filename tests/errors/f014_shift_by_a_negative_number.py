import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int32")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = A[bx, 0] << (block_M - 65)

    return main


# ---- expected ----
# error[T2C-F014]: a shift of int32 is by 0 to 31 bits, not by -1
#   --> f014_shift_by_a_negative_number.py:10:24
#    |
# 10 |             B[bx, 0] = A[bx, 0] << (block_M - 65)
#    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^
