"""LayerNorm of rows that are kept in registers, with its statistics for the backward pass."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-3, -2, -1])
def layernorm(M, dim, block_M=4, threads=128, eps=1e-5, dtype="float16"):
    """Y = (X - Mean) * Rstd * W + B, row by row, where Rstd = 1 / sqrt(variance + eps)."""
    accum_dtype = "float32"

    @T.prim_func
    def layernorm_kernel(
        X: T.Tensor((M, dim), dtype),
        W: T.Tensor((dim,), dtype),
        B: T.Tensor((dim,), dtype),
        Y: T.Tensor((M, dim), dtype),
        Mean: T.Tensor((M,), accum_dtype),
        Rstd: T.Tensor((M,), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, dim), accum_dtype)
            squares = T.alloc_fragment((block_M, dim), accum_dtype)
            mean = T.alloc_fragment((block_M,), accum_dtype)
            rstd = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(X[bx * block_M, 0], x)
            T.reduce_sum(x, mean, dim=1)
            for i in T.Parallel(block_M):
                mean[i] = mean[i] / dim
            # The variance is the sum of squared differences: no cancellation where the mean is large.
            for i, j in T.Parallel(block_M, dim):
                x[i, j] -= mean[i]
            for i, j in T.Parallel(block_M, dim):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, rstd, dim=1)
            for i in T.Parallel(block_M):
                rstd[i] = T.rsqrt(rstd[i] / dim + eps)
            for i, j in T.Parallel(block_M, dim):
                x[i, j] = x[i, j] * rstd[i] * W[j] + B[j]
            T.copy(x, Y[bx * block_M, 0])
            T.copy(mean, Mean[bx * block_M])
            T.copy(rstd, Rstd[bx * block_M])

    return layernorm_kernel
