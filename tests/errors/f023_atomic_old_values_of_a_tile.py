import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(B: T.Tensor((M,), "int8"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64, 64), "float32")
            T.clear(L)
            T.atomic_add(Y[0, 0], L, return_prev=True)

    return main


# ---- expected ----
# error[T2C-F023]: T.atomic_add of tiles gives no old values
#   --> f023_atomic_old_values_of_a_tile.py:12:13
#    |
# 12 |             T.atomic_add(Y[0, 0], L, return_prev=True)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write a T.Parallel loop over its elements
