import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            S = T.alloc_shared((block_M, 64), "float16")
            T.annotate_layout({S: T.Layout(S.shape, lambda i, j: (i, (j ^ (i % 8) * 8) % 32))})
            T.copy(A[bx * block_M, 0], S)
            T.copy(S, B[bx * block_M, 0])

    return main

# ---- expected ----
# error[T2C-L016]: the layout of `S` puts its elements (0, 0) and (0, 32) in one place, (0, 0)
#   --> l016_two_elements_in_one_place.py:11:13
#    |
# 11 |             T.annotate_layout({S: T.Layout(S.shape, lambda i, j: (i, (j ^ (i % 8) * 8) % 32))})
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: give each element a place of its own, or leave the layout out: tile2cu chooses one
