"""RMSNorm: each row divided by the root of its mean square, times a weight for each column."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rmsnorm(M, dim, block_M=None, threads=None, eps=1e-5, dtype="float16", read_twice=None):
    """Y = X / sqrt(mean(X * X) + eps) * W, row by row."""
    accum_dtype = "float32"
    share = 1 / dim  # of an element in a mean

    # What is not given is what was fastest for such rows on an H200. A row lies in as many threads as divide its packets
    # of 16 bytes, but long ones two packets or more a thread. Rows of 17 to 32 packets, and such as so few threads divide
    # that one would have more than six, are taken by whole warps, and some of the last one's lanes are idle.
    row_bytes = dim * (4 if dtype == "float32" else 2)
    packets = row_bytes // 16
    lanes = max(1, min(packets & -packets, 16 if packets <= 64 else min(packets // 2, 512)))
    if packets > 16 and (packets <= 32 or packets // lanes > 6):
        lanes = 32 if packets <= 6 * 32 else 128 if packets <= 6 * 128 else 512
    # Rows of 17 to 63 packets, no power of two, go on thread by thread wherever warps end, three packets each, where
    # few warps have a multiple of so many threads. Of few rows that would be too few blocks.
    even = packets * 32 // min(packets & -packets, 32)
    goes_on = 16 < packets < 64 and packets & (packets - 1) != 0 and even <= 288
    few = isinstance(M, int) and M <= 16384
    if threads is None and block_M is None and goes_on and not few:
        threads = even
        block_M = 3 * threads // packets
    if threads is None:
        threads = max(lanes, 64 if packets // lanes >= 4 else 128)
    if block_M is None:
        # A warp has two rows that fill it once.
        block_M = max(1, threads // lanes * (2 if lanes == 32 and packets <= 32 else 1))
    # Long rows are read again, from caches, for what is written.
    if read_twice is None:
        read_twice = row_bytes >= 8192

    @T.prim_func
    def rmsnorm_kernel(X: T.Tensor((M, dim), dtype), W: T.Tensor((dim,), dtype), Y: T.Tensor((M, dim), dtype)):
        # grid dims: (#blocks of rows)
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, dim), accum_dtype)
            squares = T.alloc_fragment((block_M, dim), accum_dtype)
            sum_squares = T.alloc_fragment((block_M,), accum_dtype)
            weights = T.alloc_fragment((dim,), dtype)

            if not read_twice:
                # Asked for before the rows, so that nobody waits for them behind the sums.
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
