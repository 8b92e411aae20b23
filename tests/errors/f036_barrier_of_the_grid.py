import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            A_local = T.alloc_fragment((64, 64), "float16")
            T.copy(A[bx * 64, 0], A_local)
            T.sync_grid()
            T.copy(A_local, B[bx * 64, 0])

    return main
# ---- expected ----
# error[T2C-F036]: `A_local` keeps what was written before T.sync_grid
#   --> f036_barrier_of_the_grid.py:12:13
#    |
# 12 |             T.sync_grid()
#    |             ^^^^^^^^^^^^^
#   = help: keep what goes on in a tensor (T.alloc_global), and write T.sync_grid() where all blocks come once
