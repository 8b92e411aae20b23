import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M, 64), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=384) as bx:
            S = T.alloc_shared((64, 64), "float32")
            with T.ws(0):
                T.copy(X[bx * block, 0], S)
                T.sync_threads(1, 128)
            with T.ws(0, 1):
                T.copy(S, Y[bx * block, 0])

    return main
# ---- expected ----
# error[T2C-P004]: the groups of T.ws overlap, or leave out groups in their middle
#   --> p004_groups_that_overlap.py:14:13
#    |
# 14 |             with T.ws(0, 1):
#    |             ^^^^^^^^^^^^^^^^
# note: a group has a barrier and fragments of its own
#   --> p004_groups_that_overlap.py:11:13
#    |
# 11 |             with T.ws(0):
#    |             ^^^^^^^^^^^^^
#   = help: name the same groups together everywhere: T.ws(0) and T.ws(1, 2), or T.ws(0), T.ws(1) and T.ws(2); a part of a group may work on tiles, too, but neither wait nor be waited for
