"""Threads read what others wrote, in a branch on a tensor that the kernel writes: they agree on it, and meet."""

import tilelang
import tilelang.language as T

@tilelang.jit
def kernel(N, dtype="float32"):
    @T.prim_func
    def body(
        Flag: T.Tensor((8,), "int32"), X: T.Tensor((128,), dtype), Y: T.Tensor((128,), dtype), Z: T.Tensor((128,), dtype),
    ):
        with T.Kernel(1, threads=128) as bx:
            for i in T.Parallel(8):
                Flag[i] = i + 3
            if Flag[0] > 2:
                for i in T.Parallel(128):
                    Y[i] = X[i] + 1.0
                for i in T.Parallel(128):
                    Z[i] = Y[127 - i]
                Flag[0] = 0
    return body
