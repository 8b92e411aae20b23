import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_shared((64,), "float32")
            L = T.alloc_fragment((32,), "float32")
            T.copy(S, Y[bx, 0])
            T.copy(X[0, 0], L[0:16])

    return main
# ---- expected ----
# error[T2C-S005]: this part of the tile `L` cannot be used yet
#   --> s005_part_of_a_tile.py:13:13
#    |
# 13 |             T.copy(X[0, 0], L[0:16])
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^
# note: `L` is allocated here
#   --> s005_part_of_a_tile.py:11:13
#    |
# 11 |             L = T.alloc_fragment((32,), "float32")
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: copy the whole tile, or write the elements in a T.Parallel loop
