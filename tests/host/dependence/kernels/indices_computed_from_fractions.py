"""Indices that are computed from numbers with fractions: their range is unknown, and they may leave the tensor."""

import tilelang.language as T


def indices_computed_from_fractions(N):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((3, 64), "float32"), Z: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((128,), "float32")
            for i in T.Parallel(64):
                Y[0, i] = X[T.cast(T.cast(i, "float32") * 1.5, "int32")]
            for i in T.Parallel(128):
                S[i] = X[T.cast(i * 0.75, "int32")]
            for i in T.Parallel(64):
                Y[1, i] = S[127 - i]
            for i in T.Parallel(64):
                Z[T.cast(i * (-0.5), "int32") * 2 + 20] = 3

    return kernel
