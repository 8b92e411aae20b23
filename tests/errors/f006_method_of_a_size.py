import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    bits = (N // block).bit_length()

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=128) as bx:
            Y[bx] = X[bx, bits]

    return main

# ---- expected ----
# error[T2C-F006]: `(N // block).bit_length` needs the value of `N`, which is left unbound
#  --> f006_method_of_a_size.py:7:12
#   |
# 7 |     bits = (N // block).bit_length()
#   |            ^^^^^^^^^^^^^^^^^^^^^^^
#   = help: bind it with `-D N=...`, a default, or a call in the file
