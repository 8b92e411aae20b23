# tile2cu: --target cuda:sm_90a
import tilelang.language as T


@T.prim_func
def stored(A: T.Tensor((64, 512), "float32")):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((4, 512), "float32")
        T.clear(S)
        T.tma_copy(S, A[0, 0])
        T.tma_store_wait()
# ---- expected ----
# error[T2C-S007]: T.tma_copy stores `S` of 512 columns, and a TMA box has at most 256; tiles with a multiple of 8 rows use several boxes
#   --> s007_tma_wide_rows.py:10:9
#    |
# 10 |         T.tma_copy(S, A[0, 0])
#    |         ^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.copy
