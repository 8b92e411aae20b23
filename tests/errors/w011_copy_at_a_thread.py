import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, N), threads=128) as bx:
            S = T.alloc_shared((N, N), "float32")
            X_local = T.alloc_fragment((8, N), "float32")
            row = T.alloc_local((4,), "float32")
            tx = T.get_thread_binding()
            T.copy(X[bx * N, 0], S)
            T.copy(S[tx // 16, 0], X_local)
            T.copy(X_local, Y[bx * 8, 0])
            T.copy(S[tx // 2, 0:4], row)
            T.copy(row, Y[tx, 0:4])

    return main


# ---- expected ----
# warning[T2C-W011]: the threads of the block copy a tile from or to different places
#   --> w011_copy_at_a_thread.py:15:13
#    |
# 15 |             T.copy(S[tx // 16, 0], X_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: each thread moves the elements that the layout gives it, at the place that it computes itself
#   = help: compute the place from the block's index, or copy into T.alloc_local, which each thread has itself
