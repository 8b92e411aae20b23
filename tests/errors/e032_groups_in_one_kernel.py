# tile2cu: --target cuda:sm_90a
import tilelang.language as T


def two(N, threads=256):
    @T.prim_func
    def body(A: T.Tensor((N, 64), "float16"), B: T.Tensor((N, 64), "float16"), C: T.Tensor((N, 64), "float16")):
        with T.Kernel(T.ceildiv(N, 128), threads=256) as bx:
            first = T.alloc_shared((128, 64), "float16")
            held = T.alloc_fragment((128, 64), "float16")
            ready = T.alloc_barrier(arrive_count=128)
            with T.ws(1):
                T.tma_copy(A[bx * 128, 0], first, barrier=ready)
                T.barrier_arrive(ready)
            with T.ws(0):
                T.barrier_wait(ready, 0)
                T.copy(first, held)
                T.copy(held, B[bx * 128, 0])
        with T.Kernel(T.ceildiv(N, 128), threads=threads) as bx:
            tile = T.alloc_shared((128, 64), "float16")
            T.copy(B[bx * 128, 0], tile)
            for i, j in T.Parallel(128, 64):
                tile[i, j] = tile[i, j] * 2
            T.copy(tile, C[bx * 128, 0])

    return body


# ---- expected ----
# error[T2C-E032]: one kernel of the text has groups of threads (T.ws), another has not, or others
#  --> e032_groups_in_one_kernel.py:8:9
#   |
# 8 |         with T.Kernel(T.ceildiv(N, 128), threads=256) as bx:
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write them as two functions
