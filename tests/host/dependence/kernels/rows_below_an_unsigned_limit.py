"""A limit of rows that is unsigned: an index compares with it as a signed number, where nothing is below 2**32 - 1."""

import tilelang.language as T


def rows_below_an_unsigned_limit(N):
    @T.prim_func
    def kernel(
        Z: T.Tensor((64, 128), "float16"),
        W: T.Tensor((128, 64), "float16"),
        limits: T.Tensor((2,), "uint32"),
        Y: T.Tensor((64, 64), "float32"),
        below: T.int32,
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            limits[0] = 40
            limits[1] = below
            T.clear(C)
            for k in T.Pipelined(2, num_stages=2):
                for i, j in T.Parallel(64, 64):
                    A_shared[i, j] = T.if_then_else(i < limits[k], Z[i, k * 64 + j], 0)
                T.copy(W[k * 64, 0], B_shared)
                T.gemm(A_shared, B_shared, C)
            T.copy(C, Y)

    return kernel
