import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=1024, N=256):
    K = T.dynamic("K")
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 128), threads=128) as (bx, by):
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((128, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * 128, k * 32], A_shared)
                T.copy(B[k * 32, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * 128, bx * 64])
    return main


# ---- expected ----
# warning[T2C-W002]: where dimension 1 of `A` is no multiple of 32, its tail is never accessed
#   --> w002_tail_of_a_size_of_the_call.py:16:17
#    |
# 16 |                 T.copy(A[by * 128, k * 32], A_shared)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: count the tiles with T.ceildiv(size, 32); accesses past the end are bounds-checked
#
# warning[T2C-W002]: where dimension 0 of `B` is no multiple of 32, its tail is never accessed
#   --> w002_tail_of_a_size_of_the_call.py:17:17
#    |
# 17 |                 T.copy(B[k * 32, bx * 64], B_shared)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: count the tiles with T.ceildiv(size, 32); accesses past the end are bounds-checked
