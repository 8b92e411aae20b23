import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, block=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                X[bx * block + i] = 1.0
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                X[bx * block + i] = 2.0

    return main

# ---- expected ----
# error[T2C-E004]: `kernel` launches 2 kernels, and one is supported yet
#   --> e004_two_launches.py:12:9
#    |
# 12 |         with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write one function for each `with T.Kernel`
