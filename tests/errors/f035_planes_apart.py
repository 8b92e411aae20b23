import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_shared((4, 3, 5), "float32")
            T.clear(T.reshape(S, (60,)))

    return main


# ---- expected ----
# error[T2C-F035]: T.reshape of `S`: a plane (3, 5) of float32 is no multiple of 16 bytes, so that planes do not follow one another
#   --> f035_planes_apart.py:11:21
#    |
# 11 |             T.clear(T.reshape(S, (60,)))
#    |                     ^^^^^^^^^^^^^^^^^^^
#   = help: make the planes larger, or use two dimensions
