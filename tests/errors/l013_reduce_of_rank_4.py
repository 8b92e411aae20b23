import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            L = T.alloc_fragment((2, 2, 8, 64), "float32")
            r = T.alloc_fragment((2, 8, 64), "float32")
            T.reduce_sum(L, r, dim=0)

    return main

# ---- expected ----
# error[T2C-L013]: `L` cannot be reduced along dimension 0 in its layout
#   --> l013_reduce_of_rank_4.py:12:13
#    |
# 12 |             T.reduce_sum(L, r, dim=0)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: its layout is Blocked(extents=(2, 2, 8, 64), threads=(1, 1, 8, 16), vector=4, block_threads=128, rows=1), by `layout.free.flat`
#   = help: give the fragment at most three dimensions
