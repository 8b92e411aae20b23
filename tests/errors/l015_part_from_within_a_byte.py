import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(X: T.Tensor((M, 64), "float4_e2m1fn"), Y: T.Tensor((M, 64), "float4_e2m1fn")):
        with T.Kernel(M, threads=128) as bx:
            S = T.alloc_shared((1, 32), "float4_e2m1fn")
            T.copy(X[bx, 1], S)
            T.copy(S, Y[bx, 0])

    return main
# ---- expected ----
# error[T2C-L015]: a part of `X` that may start or end inside a byte: two float4_e2m1fn share one
#   --> l015_part_from_within_a_byte.py:11:13
#    |
# 11 |             T.copy(X[bx, 1], S)
#    |             ^^^^^^^^^^^^^^^^^^^
#   = help: take parts along the last dimension that start at, and have, a multiple of 2 elements
