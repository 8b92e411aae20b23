# tile2cu: --target hip:gfx942
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            A_local = T.alloc_fragment((64, 64), "float16")
            for k in range(T.ceildiv(N, 64)):
                T.copy(A[bx * 64, k * 64], A_local)
                T.copy(A_local, B[bx * 64, k * 64])
                T.sync_grid()

    return main
# ---- expected ----
# error[T2C-S006]: gfx942 has no barrier of the grid that tile2cu emits in a kernel
#   --> s006_barrier_of_the_grid_in_a_loop.py:15:17
#    |
# 15 |                 T.sync_grid()
#    |                 ^^^^^^^^^^^^^
#   = help: keep what goes on in a tensor (T.alloc_global), and write T.sync_grid() where all blocks come once
