"""Products of bytes and 2-bit numbers that dp4a does not compute: other numbers subtracted, other signs."""

import tilelang.language as T


@T.macro
def load(W, X, packed, x, sums):
    T.copy(W, packed)
    T.copy(X, x)
    T.clear(sums)


@T.macro
def store(sums, total, Y, row):
    T.reduce_sum(sums, total, dim=1)
    T.copy(total, Y[row, 0:16])


def products_that_are_no_packed_dot(N):
    @T.prim_func
    def kernel(
        W: T.Tensor((16, 128), "uint8"),
        X: T.Tensor((512,), "int8"),
        Y: T.Tensor((4, 16), "int32"),
        first: T.int32,
    ):
        with T.Kernel(1, threads=128) as bx:
            x = T.alloc_shared((512,), "int8")
            packed = T.alloc_fragment((16, 128), "uint8")
            sums = T.alloc_fragment((16, 128), "int32")
            total = T.alloc_fragment((16,), "int32")
            load(W, X, packed, x, sums)
            for i, j in T.Parallel(16, 128):
                for part in T.unroll(4):
                    weight = (T.cast(packed[i, j], "int32") >> (2 * part) & 3) - first
                    sums[i, j] += weight * T.cast(x[4 * j + part], "int32")
            store(sums, total, Y, 0)
            T.clear(sums)
            for i, j in T.Parallel(16, 128):
                for part in T.unroll(4):
                    weight = (T.cast(packed[i, j], "int32") >> (2 * part) & 3) - 1.5
                    sums[i, j] += weight * T.cast(x[4 * j + part], "int32")
            store(sums, total, Y, 1)
            T.clear(sums)
            for i, j in T.Parallel(16, 128):
                for part in T.unroll(4):
                    weight = (T.cast(packed[i, j], "int32") >> (2 * part) & 3) - 1
                    sums[i, j] += weight * T.cast(T.cast(x[4 * j + part], "uint8"), "int32")
            store(sums, total, Y, 2)
            T.clear(sums)
            for i, j in T.Parallel(16, 128):
                for part in T.unroll(4):
                    weight = T.cast((T.cast(packed[i, j], "int32") >> (2 * part) & 3) - 1, "uint8")
                    sums[i, j] += T.cast(weight, "int32") * T.cast(x[4 * j + part], "int32")
            store(sums, total, Y, 3)

    return kernel
