import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_shared((64, 32), "float16")
            rows = T.view(S, (32, 64), "float32")
            T.clear(rows)

    return main


# ---- expected ----
# error[T2C-F035]: T.view of `S`: (64, 32) of float16 and (32, 64) of float32 are 32,768 and 65,536 bits
#   --> f035_view_of_other_size.py:11:20
#    |
# 11 |             rows = T.view(S, (32, 64), "float32")
#    |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: the new shape needs the same number of bits
