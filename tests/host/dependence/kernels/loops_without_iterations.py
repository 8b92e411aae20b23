"""Loops whose trip counts are zero when they are transpiled."""

import tilelang.language as T


def loops_without_iterations(N):
    @T.prim_func
    def kernel(X: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.fill(C, 2)
            for k in T.Pipelined(N - 256, num_stages=2):
                T.copy(X, A_shared)
                T.gemm(A_shared, A_shared, C)
            for i, j in T.Parallel(N - 256, 64):
                C[i, j] = 1
            for i in T.Parallel(64):
                for v in T.vectorized(N - 256):
                    Y[i, v] = 1
            for k in T.unroll(N - 256):
                for i in T.Parallel(64):
                    Y[k, i] = 1
            T.copy(C[0:32, 0:64], Y[32:64, 0:64])

    return kernel
