import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=96) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm(A_shared, B_shared, C_local)

    return main

# ---- expected ----
# error[T2C-L010]: 3 warps cannot share a GEMM of 64 x 64
#   --> l010_warps_do_not_fit.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_shared, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: each warp owns a multiple of 16 rows and of 8 columns, and all parts are equal
#   = help: change the tile of `C_local` or `threads=96`
