import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            T.barrier_wait(A_shared, 0)

    return main

# ---- expected ----
# error[T2C-F023]: the first argument of T.barrier_wait is a barrier of T.alloc_barrier, not `A_shared`, a shared buffer
#   --> f023_no_barrier.py:11:13
#    |
# 11 |             T.barrier_wait(A_shared, 0)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
