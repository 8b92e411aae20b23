import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64, 64), "float32")
            sums = T.alloc_fragment((64,), "float32")
            T.clear(L)
            T.reduce_sum(L, sums, dim=1, nan_propagate=True)

    return main


# ---- expected ----
# error[T2C-F023]: `nan_propagate` is for T.reduce_max and T.reduce_min and T.reduce_absmax
#   --> f023_nan_of_a_sum.py:13:13
#    |
# 13 |             T.reduce_sum(L, sums, dim=1, nan_propagate=True)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: leave it out
