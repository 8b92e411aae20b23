import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_shared((2, 32, 64), "float32")
            T.clear(S)

    return main
# ---- expected ----
# error[T2C-L022]: the shared tile `S` has rank 3, and 1 and 2 are supported yet
#   --> l022_rank_of_a_shared_tile.py:10:13
#    |
# 10 |             S = T.alloc_shared((2, 32, 64), "float32")
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: put its first dimensions into one, or allocate several tiles
