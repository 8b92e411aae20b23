import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, K):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 256), T.ceildiv(M, 256), threads=128) as (bx, by):
            A_shared = T.alloc_shared((256, 32), "float16")
            B_shared = T.alloc_shared((32, 256), "float16")
            acc = T.alloc_fragment((256, 256), "float32")
            T.clear(acc)
            for k in T.serial(T.ceildiv(K, 32)):
                T.copy(A[by * 256, k * 32], A_shared)
                T.copy(B[k * 32, bx * 256], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * 256, bx * 256])
    return main


# ---- expected ----
# warning[T2C-W009]: fragments need 512 registers per thread, and a thread has 255: they spill
#  --> w009_accumulator_of_few_threads.py:9:9
#   |
# 9 |         with T.Kernel(T.ceildiv(N, 256), T.ceildiv(M, 256), threads=128) as (bx, by):
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: live at one time, by registers: acc 512
#   = help: use more threads, smaller tiles, or keep a tile in shared memory; `tile2cu resources` states what the compiler allocates
