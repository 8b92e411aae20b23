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
                row = X[bx, tx]
                T.fill(L, row)

    return main
# ---- expected ----
# error[T2C-P004]: only some threads of the block execute this operation on a whole tile
#   --> p004_tile_in_a_divergent_branch.py:14:17
#    |
# 14 |                 T.fill(L, row)
#    |                 ^^^^^^^^^^^^^^
# note: the branch depends on the thread
#   --> p004_tile_in_a_divergent_branch.py:12:13
#    |
# 12 |             if tx < 50:
#    |             ^^^^^^^^^^^
#   = help: move it out of the `if`, with the barriers and the values of single threads that it needs, or give each branch whole warps, which no other branch has: 128 and 256 of 384
