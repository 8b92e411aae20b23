import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(B: T.Tensor((M,), "int8"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64, 64), "float32")
            T.clear(L)
            T.atomic_or(Y[0, 0], 1)

    return main


# ---- expected ----
# error[T2C-F023]: T.atomic_or combines the bits of integers, and `Y` holds float32
#   --> f023_atomic_bits_of_floats.py:12:13
#    |
# 12 |             T.atomic_or(Y[0, 0], 1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^
