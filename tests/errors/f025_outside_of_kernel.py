import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M):
    @T.prim_func
    def main(A: T.Tensor((M,), "float32")):
        T.clear(A)

    return main

# ---- expected ----
# error[T2C-F025]: T.clear is used outside of `with T.Kernel(...)`
#  --> f025_outside_of_kernel.py:9:9
#   |
# 9 |         T.clear(A)
#   |         ^^^^^^^^^^
#   = help: put it into the block of `with T.Kernel(blocks, threads=128) as bx:`
