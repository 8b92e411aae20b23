import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(B=2**16, S=2**16):
    @T.prim_func
    def main(A: T.Tensor((B, S), "float16"), C: T.Tensor((128,), "float16")):
        with T.Kernel(1) as bx:
            flat = T.reshape(A, (B * S,))
            for i in T.Parallel(128):
                C[i] = flat[i]

    return main

# ---- expected ----
# error[T2C-F023]: the shape of T.reshape has the extent 4294967296, which int32 does not hold
#   --> f023_extent_of_64_bits.py:10:20
#    |
# 10 |             flat = T.reshape(A, (B * S,))
#    |                    ^^^^^^^^^^^^^^^^^^^^^^
#   = help: extents and indices are of 32 bits; more elements need several dimensions
