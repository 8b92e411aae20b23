"""RMSNorm: each row divided by the root of its mean square, times a weight for each column."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rmsnorm(M, dim, block_M=None, threads=None, eps=1e-5, dtype="float16", read_twice=None):
    """Y = X / sqrt(mean(X * X) + eps) * W, row by row."""
    accum_dtype = "float32"
    share = 1 / dim  # weight of an element in a mean

    # Defaults: the fastest for such rows on an H200 (benchmarks/RESULTS.md). The threads of a row divide its 16-byte
    # vectors evenly, with two or more per thread in long rows. Rows of 17 to 32 vectors, and rows that only so few
    # threads divide that one would have more than six, take whole warps, of which some lanes of the last are idle.
    row_bytes = dim * (4 if dtype == "float32" else 2)
    packets = row_bytes // 16
    lanes = max(1, min(packets & -packets, 16 if packets <= 64 else min(packets // 2, 512)))
    if packets > 16 and (packets <= 32 or packets // lanes > 6):
        lanes = 32 if packets <= 6 * 32 else 128 if packets <= 6 * 128 else 512
    # Rows of 17 to 63 vectors, no power of two, take consecutive threads across warp boundaries, three vectors each,
    # where few warps have a multiple of so many threads. With few rows that would be too few blocks.
    even = packets * 32 // min(packets & -packets, 32)
    goes_on = 16 < packets < 64 and packets & (packets - 1) != 0 and even <= 288
    few = isinstance(M, int) and M <= 16384
    if threads is None and block_M is None and goes_on and not few:
        threads = even
        block_M = 3 * threads // packets
    if threads is None:
        threads = max(lanes, 64 if packets // lanes >= 4 else 128)
    if block_M is None:
        # A warp processes two rows that fill it once.
        block_M = max(1, threads // lanes * (2 if lanes == 32 and packets <= 32 else 1))
    # Long rows are read a second time, from cache, for the output.
    if read_twice is None:
        read_twice = row_bytes > 16384

    @T.prim_func
    def rmsnorm_kernel(X: T.Tensor((M, dim), dtype), W: T.Tensor((dim,), dtype), Y: T.Tensor((M, dim), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, dim), accum_dtype)
            squares = T.alloc_fragment((block_M, dim), accum_dtype)
            sum_squares = T.alloc_fragment((block_M,), accum_dtype)
            weights = T.alloc_fragment((dim,), dtype)

            if not read_twice:
                # Loaded before the rows, so that their latency is not exposed after the sums.
                T.copy(W, weights, eviction_policy="evict_last")
            T.copy(X[bx * block_M, 0], x, eviction_policy="evict_last" if read_twice else "evict_normal")
            for i, j in T.Parallel(block_M, dim):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, sum_squares, dim=1)
            if read_twice:
                T.copy(X[bx * block_M, 0], x, eviction_policy="evict_first")
                T.copy(W, weights, eviction_policy="evict_last")
            for i, j in T.Parallel(block_M, dim):
                x[i, j] = x[i, j] * T.rsqrt(sum_squares[i] * share + eps) * weights[j]
            T.copy(x, Y[bx * block_M, 0])

    return rmsnorm_kernel
