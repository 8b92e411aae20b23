import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            A_shared = T.alloc_shared((64, 24), "float16")
            B_shared = T.alloc_shared((24, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm(A_shared, B_shared, C_local)

    return main

# ---- expected ----
# error[T2C-S002]: K of this GEMM is 24, and float16 MMAs take K in 16s
#   --> s002_k.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_shared, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: make K a multiple of 16; tiles past the end of a tensor are filled with zeros
