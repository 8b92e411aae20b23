"""GEMM of 8-bit activations with ternary 2-bit weights, as BitNet b1.58 stores them: X @ W^T in integers.

W[n, k] is -1, 0 or 1, stored plus 1 in bits 2 (k % 4) and 2 (k % 4) + 1 of byte k // 4 of its row. K is a multiple
of 4. Y is exact for K < 2**24, where no sum exceeds int32; the caller applies the scales of X and W.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def w2a8_gemm(M, N, K, block_M=64, block_N=64, block_K=128, num_stages=2, threads=128):
    """Y = X @ W^T, for many rows of X."""

    @T.prim_func
    def w2a8_gemm_kernel(
        X: T.Tensor((M, K), "int8"),
        W: T.Tensor((N, K // 4), "uint8"),
        Y: T.Tensor((M, N), "int32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), "int8")
            packed = T.alloc_shared((block_N, block_K // 4), "uint8")
            W_shared = T.alloc_shared((block_N, block_K), "int8")
            Y_local = T.alloc_fragment((block_M, block_N), "int32")

            T.clear(Y_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * (block_K // 4)], packed)
                # Weights past the end are -1, and are multiplied by zeros of X.
                for i, j in T.Parallel(block_N, block_K):
                    W_shared[i, j] = T.cast((T.cast(packed[i, j // 4], "int32") >> (2 * (j % 4)) & 3) - 1, "int8")
                T.gemm(X_shared, W_shared, Y_local, transpose_B=True)
            T.copy(Y_local, Y[by * block_M, bx * block_N])

    return w2a8_gemm_kernel


@tilelang.jit(out_idx=[-1])
def w2a8_gemv(
    M,
    N,
    K,
    block_N=None,
    block_K=None,
    num_stages=None,
    threads=64,
):
    """Y = X @ W^T, one row of X per block."""
    # Defaults: the fastest on an H200 (benchmarks/RESULTS.md), whose 132 SMs run ten such blocks each: 16 rows per
    # block where the grid is one wave, with fewer stages where it is slightly more, and 8 where it would be more than
    # two waves.
    at_once = 132 * 10
    blocks = N // 16 if isinstance(N, int) else 2 * at_once
    if block_N is None:
        block_N = 8 if blocks > 2 * at_once else 16  # rows of W per block
    if block_K is None:
        block_K = 2048 if block_N <= 8 else 1024  # columns per iteration
    if num_stages is None:
        num_stages = 3 if at_once // 2 < blocks <= at_once else 4

    @T.prim_func
    def w2a8_gemv_kernel(
        X: T.Tensor((M, K), "int8"),
        W: T.Tensor((N, K // 4), "uint8"),
        Y: T.Tensor((M, N), "int32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), M, threads=threads) as (bn, m):
            x = T.alloc_shared((block_K,), "int8")
            W_shared = T.alloc_shared((block_N, block_K // 4), "uint8")
            packed = T.alloc_fragment((block_N, block_K // 4), "uint8")
            partial = T.alloc_fragment((block_N, block_K // 4), "int32")
            total = T.alloc_fragment((block_N,), "int32")

            T.clear(partial)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[m, ko * block_K], x)
                T.copy(W[bn * block_N, ko * (block_K // 4)], W_shared)
                T.copy(W_shared, packed)
                # Each thread adds its own columns; one reduction over threads at the end.
                for i, j in T.Parallel(block_N, block_K // 4):
                    for part in T.unroll(4):
                        weight = (T.cast(packed[i, j], "int32") >> (2 * part) & 3) - 1
                        partial[i, j] += weight * T.cast(x[4 * j + part], "int32")
            T.reduce_sum(partial, total, dim=1)
            T.copy(total, Y[m, bn * block_N])

    return w2a8_gemv_kernel
