import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64, 32), "float32")
            total = T.alloc_fragment((64,), "float32")
            for i, j in T.Parallel(64, 32):
                total[i] = L[i, j]

    return main

# ---- expected ----
# error[T2C-L014]: threads that hold one element of `total` would write different values to it
#   --> l014_values_of_other_elements.py:13:17
#    |
# 13 |                 total[i] = L[i, j]
#    |                 ^^^^^^^^^^^^^^^^^^
# note: this loop runs over i, j
#   --> l014_values_of_other_elements.py:12:13
#    |
# 12 |             for i, j in T.Parallel(64, 32):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: combine values of several elements with T.reduce_*, T.atomic_* on memory, or T.alloc_reducer
