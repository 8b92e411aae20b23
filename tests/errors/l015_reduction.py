import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "uint4"), Y: T.Tensor((M,), "uint4")):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
            X_local = T.alloc_fragment((32, 64), "uint4")
            total = T.alloc_fragment((32,), "uint4")
            T.copy(X[bx * 32, 0], X_local)
            T.reduce_sum(X_local, total, dim=1)
            T.copy(total, Y[bx * 32])

    return main
# ---- expected ----
# error[T2C-L015]: the result of a reduction does not take uint4, of which `total` is
#   --> l015_reduction.py:13:13
#    |
# 13 |             T.reduce_sum(X_local, total, dim=1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: take a wider result
