"""RMSNorm: each row divided by the root of its mean square, times a weight for each column."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rmsnorm(M, dim, block_M=4, threads=128, eps=1e-5, dtype="float16"):
    """Y = X / sqrt(mean(X * X) + eps) * W, row by row."""
    accum_dtype = "float32"
    share = 1 / dim  # of an element in a mean

    @T.prim_func
    def rmsnorm_kernel(X: T.Tensor((M, dim), dtype), W: T.Tensor((dim,), dtype), Y: T.Tensor((M, dim), dtype)):
        # grid dims: (#blocks of rows)
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, dim), accum_dtype)
            squares = T.alloc_fragment((block_M, dim), accum_dtype)
            sum_squares = T.alloc_fragment((block_M,), accum_dtype)
            weights = T.alloc_fragment((dim,), dtype)

            # Asked for before the rows, so that nobody waits for them behind the sums.
            T.copy(W, weights)
            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, dim):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, sum_squares, dim=1)
            for i, j in T.Parallel(block_M, dim):
                x[i, j] = x[i, j] * T.rsqrt(sum_squares[i] * share + eps) * weights[j]
            T.copy(x, Y[bx * block_M, 0])

    return rmsnorm_kernel
