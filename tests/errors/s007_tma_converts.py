# tile2cu: --target cuda:sm_90a
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            A_shared = T.alloc_shared((64, 64), "float32")
            ready = T.alloc_barrier(256)
            T.tma_copy(A[bx * 64, 0], A_shared, barrier=ready)

    return main

# ---- expected ----
# error[T2C-S007]: T.tma_copy changes the element type, or the rank of its tensor is over 5
#   --> s007_tma_converts.py:13:13
#    |
# 13 |             T.tma_copy(A[bx * 64, 0], A_shared, barrier=ready)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.copy
