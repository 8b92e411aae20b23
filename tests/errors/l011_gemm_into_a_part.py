import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((128, 64), "float32")
            T.gemm(A_shared, B_shared, C_local[0:64, :])

    return main

# ---- expected ----
# error[T2C-L011]: the result of T.gemm must be a whole fragment, and `C_local` is not
#   --> l011_gemm_into_a_part.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_shared, C_local[0:64, :])
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: allocate it with T.alloc_fragment and T.copy it to `C_local` afterwards
