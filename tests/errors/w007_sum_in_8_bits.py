import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=1024):
    @T.prim_func
    def main(A: T.Tensor((M, 64), "int8"), B: T.Tensor((M,), "int8")):
        with T.Kernel(T.ceildiv(M, 128), threads=128) as bx:
            rows = T.alloc_fragment((128, 64), "int8")
            sums = T.alloc_fragment((128,), "int8")
            T.copy(A[bx * 128, 0], rows)
            T.reduce_sum(rows, sums, dim=1)
            T.copy(sums, B[bx * 128])
    return main


# ---- expected ----
# warning[T2C-W007]: `sums` may overflow
#   --> w007_sum_in_8_bits.py:13:13
#    |
# 13 |             T.reduce_sum(rows, sums, dim=1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: the sum of 64 values of up to 128 does not fit int8
#   = help: accumulate in a wider type, or in several parts
