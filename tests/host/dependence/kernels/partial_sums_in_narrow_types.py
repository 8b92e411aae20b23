"""Partial sums in narrow types: those of other elements would overflow."""

import tilelang.language as T


def partial_sums_in_narrow_types(N):
    @T.prim_func
    def kernel(
        X: T.Tensor((64, 16), "int8"),
        Y: T.Tensor((1,), "int32"),
        H: T.Tensor((1,), "float32"),
        G: T.Tensor((64,), "float16"),
    ):
        with T.Kernel(1, threads=128) as bx:
            small = T.alloc_fragment((32, 4), "int8")
            total = T.alloc_fragment((1,), "int32")
            half = T.alloc_fragment((32, 4), "float16")
            total_of_halves = T.alloc_fragment((1,), "float32")
            rows = T.alloc_fragment((8, 64), "float16")
            sums = T.alloc_fragment((64,), "float16")
            T.clear(small)
            for i, j in T.Parallel(64, 16):
                small[i // 2, j % 4] += X[i, j] * 7 + i
            T.reduce_sum(T.reshape(small, (128,)), total, dim=0)
            T.copy(total, Y)
            T.clear(half)
            for i, j in T.Parallel(64, 16):
                half[i // 2, j % 4] += X[i, j] * 0.0 + 5000
            T.reduce_sum(T.reshape(half, (128,)), total_of_halves, dim=0)
            T.copy(total_of_halves, H)
            T.clear(sums)
            for k in T.serial(8):
                for i, j in T.Parallel(8, 64):
                    rows[i, j] = T.if_then_else(i % 2 == 0, 20000.0, -20000.0)
                T.reduce_sum(rows, sums, dim=0, clear=False)
            T.copy(sums, G)

    return kernel
