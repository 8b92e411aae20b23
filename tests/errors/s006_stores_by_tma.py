import tilelang.language as T


@T.prim_func
def stored(A: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((64, 64), "float32")
        T.clear(S)
        T.tma_copy(S, A)
        T.tma_store_wait()
# ---- expected ----
# error[T2C-S006]: sm_80 has no TMA, which T.tma_copy uses
#  --> s006_stores_by_tma.py:9:9
#   |
# 9 |         T.tma_copy(S, A)
#   |         ^^^^^^^^^^^^^^^^
#   = help: write T.copy
