import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=1024, N=256, K=1024):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 128), threads=128) as (bx, by):
            A_shared = T.alloc_shared((128, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((128, 64), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[bx * 128, k * 32], A_shared)
                T.copy(B[k * 32, by * 64], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * 128, bx * 64])
    return main


# ---- expected ----
# warning[T2C-W003]: `bx` does not cover dimension 0 of `A`, but `by` does
#   --> w003_swapped_blocks.py:15:17
#    |
# 15 |                 T.copy(A[bx * 128, k * 32], A_shared)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# note: the grid's indices are named here, x first
#  --> w003_swapped_blocks.py:9:9
#   |
# 9 |         with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 128), threads=128) as (bx, by):
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: swap `bx` and `by` here or in the grid
#
# warning[T2C-W003]: `by` does not cover dimension 1 of `B`, but `bx` does
#   --> w003_swapped_blocks.py:16:17
#    |
# 16 |                 T.copy(B[k * 32, by * 64], B_shared)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# note: the grid's indices are named here, x first
#  --> w003_swapped_blocks.py:9:9
#   |
# 9 |         with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 128), threads=128) as (bx, by):
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: swap `by` and `bx` here or in the grid
