import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "float32"), Y: T.Tensor((M,), "int4")):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
            X_local = T.alloc_fragment((32, 64), "float32")
            least = T.alloc_fragment((32,), "float32")
            Q_local = T.alloc_fragment((32,), "int4")
            S = T.alloc_shared((32,), "int4")
            T.copy(X[bx * 32, 0], X_local)
            T.reduce_min(X_local, least, dim=1)
            for i in T.Parallel(32):
                Q_local[i] = T.cast(least[i], "int4")
            T.copy(Q_local, S)
            T.copy(S, Y[bx * 32])

    return main
# ---- expected ----
# error[T2C-L015]: a thread would write single elements of `Y`, and two int4 share a byte
#   --> l015_half_a_byte.py:19:13
#    |
# 19 |             T.copy(S, Y[bx * 32])
#    |             ^^^^^^^^^^^^^^^^^^^^^
#   = help: store them one by one in a T.Parallel loop, which takes atomic operations
