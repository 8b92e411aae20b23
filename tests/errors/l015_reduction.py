import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "uint4"), Y: T.Tensor((M,), "int32")):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
            X_local = T.alloc_fragment((32, 64), "uint4")
            total = T.alloc_fragment((32,), "int32")
            T.copy(X[bx * 32, 0], X_local)
            T.reduce_sum(X_local, total, dim=1)
            T.copy(total, Y[bx * 32])

    return main
# ---- expected ----
# error[T2C-L015]: a reduction does not take uint4, of which `X_local` is
#   --> l015_reduction.py:13:13
#    |
# 13 |             T.reduce_sum(X_local, total, dim=1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: T.copy it to a tile of wider elements first
