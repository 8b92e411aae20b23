import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_shared((2, 32, 64), "float32")
            L = T.alloc_fragment((32, 64), "float32")
            T.copy(L, S[0, :, :])

    return main

# ---- expected ----
# error[T2C-S005]: this part of the tile `S` cannot be used yet
#   --> s005_part_of_a_tile.py:12:13
#    |
# 12 |             T.copy(L, S[0, :, :])
#    |             ^^^^^^^^^^^^^^^^^^^^^
# note: `S` is allocated here
#   --> s005_part_of_a_tile.py:10:13
#    |
# 10 |             S = T.alloc_shared((2, 32, 64), "float32")
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: copy the whole tile, or write the elements in a T.Parallel loop
