import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((64, 64), "float32")
            tx = T.get_thread_binding(0)
            if tx < 50:
                T.copy(X[bx * block, 0], L)
                Y[bx, tx] = L[0, 0]

    return main
# ---- expected ----
# error[T2C-P004]: only some threads of the block come to this operation on a whole tile
#   --> p004_tile_in_a_divergent_branch.py:13:17
#    |
# 13 |                 T.copy(X[bx * block, 0], L)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
# note: the branch depends on the thread
#   --> p004_tile_in_a_divergent_branch.py:12:13
#    |
# 12 |             if tx < 50:
#    |             ^^^^^^^^^^^
#   = help: move it out of the `if`, or give each branch whole warps, which no other branch has: 128 and 256 of 384
