# tile2cu: --target cuda:sm_90a
import tilelang.language as T


@T.prim_func
def stored(A: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared((64, 64), "float32")
        there = T.alloc_barrier(32)
        T.clear(S)
        T.tma_copy(S, A, barrier=there)
# ---- expected ----
# error[T2C-F023]: T.tma_copy to a tensor takes no `barrier` and no `cluster_mask`
#   --> f023_store_with_a_barrier.py:11:9
#    |
# 11 |         T.tma_copy(S, A, barrier=there)
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: T.tma_store_wait() waits for it
