# tile2cu: --target cuda:sm_90a
import tilelang.language as T


@T.prim_func
def stored(A: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((64, 64), "float32")
        T.clear(S)
        T.tma_copy(S[8:16, :], A[8:16, :])
        T.tma_store_wait()
# ---- expected ----
# error[T2C-S007]: T.tma_copy stores a part of `S` that is not all rows of whole swizzle atoms
#   --> s007_tma_stores_some_rows.py:10:9
#    |
# 10 |         T.tma_copy(S[8:16, :], A[8:16, :])
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.copy
