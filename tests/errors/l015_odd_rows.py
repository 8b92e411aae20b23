import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(X: T.Tensor((M, 33), "int4"), Y: T.Tensor((M, 33), "int8")):
        with T.Kernel(M, threads=128) as bx:
            for j in T.Parallel(33):
                Y[bx, j] = T.cast(X[bx, j], "int8")

    return main
# ---- expected ----
# error[T2C-L015]: rows of `X` have 33 elements, and two int4 share a byte
#  --> l015_odd_rows.py:8:14
#   |
# 8 |     def main(X: T.Tensor((M, 33), "int4"), Y: T.Tensor((M, 33), "int8")):
#   |              ^
#   = help: make the last extent even
