import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "int8"), Y: T.Tensor((M, 64), "int4")):
        with T.Kernel(T.ceildiv(M, 32), threads=128) as bx:
            S = T.alloc_shared((32, 64), "int4")
            for i, j in T.Parallel(64, 32):
                S[j, i] = T.cast(X[bx * 32 + j, i], "int4")
            T.copy(S, Y[bx * 32, 0])

    return main
# ---- expected ----
# error[T2C-L015]: a thread would write single elements of `S`, and two int4 share a byte
#   --> l015_half_a_byte.py:12:17
#    |
# 12 |                 S[j, i] = T.cast(X[bx * 32 + j, i], "int4")
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write them to a fragment in a T.Parallel loop over whole rows, and T.copy that
