"""Sums in single bytes at indices that iterations compute: no machine updates bytes atomically."""

import tilelang.language as T


def updates_of_single_bytes(N):
    @T.prim_func
    def kernel(X: T.Tensor((64, 16), "int8"), Y: T.Tensor((8,), "uint8"), Z: T.Tensor((8,), "int8")):
        with T.Kernel(1, threads=128) as bx:
            sums = T.alloc_fragment((8,), "uint8")
            tops = T.alloc_fragment((8,), "int8")
            T.clear(sums)
            T.fill(tops, -128)
            for i, j in T.Parallel(64, 16):
                sums[(i + j) % 8] += X[i, j] * 50
            for i, j in T.Parallel(64, 16):
                tops[(i * j) % 8] = T.max(tops[(i * j) % 8], X[i, j] * 60)
            T.copy(sums, Y)
            T.copy(tops, Z)

    return kernel
