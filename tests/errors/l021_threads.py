import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=100) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm(A_shared, B_shared, C_local)

    return main

# ---- expected ----
# error[T2C-L021]: a block cannot have 100 threads
#  --> l021_threads.py:9:9
#   |
# 9 |         with T.Kernel(T.ceildiv(M, block), threads=100) as bx:
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: use a multiple of 32 up to 1024
