import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, block=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32")):
        W = T.alloc_global((1024,), "float32")
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                X[bx * block + i] = W[i]

    return main

# ---- expected ----
# error[T2C-E005]: the workspace `W` in global memory is not supported yet
#  --> e005_workspace.py:9:9
#   |
# 9 |         W = T.alloc_global((1024,), "float32")
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: make it a parameter of the kernel
