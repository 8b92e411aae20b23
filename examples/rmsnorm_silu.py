"""RMSNorm and SiLU in one pass over memory, for rows of any multiple of 32 channels that are kept in registers."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rmsnorm_silu(M, dim, block_M=None, threads=None, eps=1e-6, dtype="float16"):
    """Y = silu(X / sqrt(mean(X * X) + eps) * W), row by row, where silu(y) = y / (1 + exp(-y))."""
    accum_dtype = "float32"
    share = 1 / dim  # weight of an element in a mean

    # Defaults: the fastest for such rows on an H200 (benchmarks/RESULTS.md): the threads of a row divide its 16-byte
    # vectors evenly, two or more each, or a warp takes the row where a thread would have more than six.
    packets = dim * (4 if dtype == "float32" else 2) // 16
    lanes = max(1, min(packets & -packets, packets // 2, 256))
    lanes = 32 if packets // lanes > 6 else lanes
    if threads is None:
        threads = max(lanes, 64)
    if block_M is None:
        # A warp processes two rows that fill it once.
        block_M = threads // lanes * (2 if lanes == 32 and packets <= 32 else 1)

    @T.prim_func
    def rmsnorm_silu_kernel(X: T.Tensor((M, dim), dtype), W: T.Tensor((dim,), dtype), Y: T.Tensor((M, dim), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, dim), accum_dtype)
            squares = T.alloc_fragment((block_M, dim), accum_dtype)
            scale = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(X[bx * block_M, 0], x)
            for i, j in T.Parallel(block_M, dim):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] * share + eps)
            for i, j in T.Parallel(block_M, dim):
                y = x[i, j] * scale[i] * W[j]
                x[i, j] = y * T.sigmoid(y)
            T.copy(x, Y[bx * block_M, 0])

    return rmsnorm_silu_kernel
