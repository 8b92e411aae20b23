import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M=1024, N=256, K=262144):
    @T.prim_func
    def main(A: T.Tensor((M, K), "int8"), B: T.Tensor((K, N), "int8"), C: T.Tensor((M, N), "int32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 128), threads=128) as (bx, by):
            A_shared = T.alloc_shared((128, 32), "int8")
            B_shared = T.alloc_shared((32, 64), "int8")
            acc = T.alloc_fragment((128, 64), "int32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 128, k * 32], A_shared)
                T.copy(B[k * 32, bx * 64], B_shared)
                T.gemm(A_shared, B_shared, acc)
            T.copy(acc, C[by * 128, bx * 64])
    return main


# ---- expected ----
# warning[T2C-W007]: `acc` may overflow
#   --> w007_k_of_an_int8_gemm.py:17:17
#    |
# 17 |                 T.gemm(A_shared, B_shared, acc)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: the sum of 262,144 values of up to 16,384 does not fit int32
#   = help: accumulate in a wider type, or in several parts
