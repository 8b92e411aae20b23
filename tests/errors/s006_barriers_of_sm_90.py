import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            ready = T.alloc_barrier(128)
            T.tma_copy(A[bx * 64, 0], A_shared, barrier=ready)

    return main

# ---- expected ----
# error[T2C-S006]: sm_80 has no mbarriers with transaction counts, and no TMA
#   --> s006_barriers_of_sm_90.py:11:13
#    |
# 11 |             ready = T.alloc_barrier(128)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.copy in a T.Pipelined loop, which tile2cu pipelines on every target, or take cuda:sm_90a
