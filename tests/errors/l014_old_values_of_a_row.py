import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(C: T.Tensor((64,), "int32"), Y: T.Tensor((8, N), "int32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((8,), "int32")
            for i, j in T.Parallel(8, 64):
                old = T.atomic_add(C[j], 1, return_prev=True)
                L[i] = old
            for i in T.Parallel(8):
                Y[i, bx] = L[i]

    return main


# ---- expected ----
# error[T2C-L014]: threads that hold one element of `L` would write different values to it
#   --> l014_old_values_of_a_row.py:13:17
#    |
# 13 |                 L[i] = old
#    |                 ^^^^^^^^^^
# note: this loop runs over i, j
#   --> l014_old_values_of_a_row.py:11:13
#    |
# 11 |             for i, j in T.Parallel(8, 64):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: combine values of several elements with T.reduce_*, T.atomic_* on memory, or T.alloc_reducer
