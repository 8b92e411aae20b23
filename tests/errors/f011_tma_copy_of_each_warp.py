# tile2cu: --target cuda:sm_90a
import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(K=1024):
    @T.prim_func
    def main(A: T.Tensor((32, K), "float32"), B: T.Tensor((32,), "float32")):
        with T.Kernel(4, threads=256) as bx:
            tx = T.get_thread_binding()
            rows = T.alloc_shared((8, K), "float32")
            bars = T.alloc_barrier([32] * 8)
            T.tma_copy(A[bx * 8 + tx // 32, 0:K], rows[tx // 32, 0:K], barrier=bars[tx // 32], leader_scope_threads=32)
            T.mbarrier_arrive(bars[tx // 32])
            T.mbarrier_wait_parity(bars[tx // 32], 0)
            B[bx * 8 + tx // 32] = rows[tx // 32, 0]

    return main

# ---- expected ----
# error[T2C-F011]: copies by TMA of a part of the block's threads each (`leader_scope_threads`) are not supported yet
#   --> f011_tma_copy_of_each_warp.py:14:13
#    |
# 14 |             T.tma_copy(A[bx * 8 + tx // 32, 0:K], rows[tx // 32, 0:K], barrier=bars[tx // 32], leader_scope_threads=32)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: one T.tma_copy loads the rows of all warps, at a barrier of all threads
