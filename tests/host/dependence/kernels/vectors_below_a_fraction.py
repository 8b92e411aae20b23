"""Vectors of which a limit with a fraction, or one of a float type, cuts off a part."""

import tilelang.language as T


def vectors_below_a_fraction(N):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((3, 64), "float32"), first: T.int32):
        with T.Kernel(1, threads=32) as bx:
            for j in T.Parallel(64):
                if j < 24.5:
                    Y[0, j] = X[j] + 9
            for j in T.Parallel(64):
                Y[1, j] = T.if_then_else(j >= 24.5, X[j], 7)
            for j in T.Parallel(64):
                Y[2, j] = T.if_then_else(j < first * 8 + 0.5, X[j], 7)

    return kernel
