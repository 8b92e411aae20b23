import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64, 32), "float32")
            S = T.alloc_shared((64,), "float32")
            T.copy(X[bx * block, 0], L)
            T.reduce_max(L, S, dim=1)

    return main
# ---- expected ----
# error[T2C-S006]: a reduction of `L` into `S` has no text yet
#   --> s006_reduction_into_shared.py:13:13
#    |
# 13 |             T.reduce_max(L, S, dim=1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^
# note: `L` is allocated here
#   --> s006_reduction_into_shared.py:10:13
#    |
# 10 |             L = T.alloc_fragment((64, 32), "float32")
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# note: `S` is allocated here
#   --> s006_reduction_into_shared.py:11:13
#    |
# 11 |             S = T.alloc_shared((64,), "float32")
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: reduce a fragment into a fragment, and copy the result
