import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64, block_K=256):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=256) as bx:
            A_shared = T.alloc_shared((256, block_K), "float16")
            B_shared = T.alloc_shared((block_K, 256), "float16")
            C_local = T.alloc_fragment((256, 256), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(N, block_K), num_stages=3):
                T.copy(X[bx * 256, k * block_K], A_shared)
                T.copy(X[k * block_K, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)

    return main

# ---- expected ----
# error[T2C-L020]: the tiles need 786,432 bytes of shared memory; sm_80 has 166,912 per block
#  --> l020_shared_memory.py:9:9
#   |
# 9 |         with T.Kernel(T.ceildiv(M, block), threads=256) as bx:
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: A_shared    393,216 bytes
#           B_shared    393,216 bytes
#   = help: the largest setting found to fit is block_K=64, num_stages=2, with 131,072 bytes
