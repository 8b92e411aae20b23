# tile2cu: --target hip:gfx942
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "int32"), B: T.Tensor((M, N), "int32")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = T.syncthreads_count(A[bx, 0] > 3)

    return main

# ---- expected ----
# error[T2C-S006]: gfx942 has no barrier that counts
#   --> s006_barrier_that_counts.py:11:13
#    |
# 11 |             B[bx, 0] = T.syncthreads_count(A[bx, 0] > 3)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: count or decide in a shared tile (T.atomic_add, or one thread), then T.sync_threads()
