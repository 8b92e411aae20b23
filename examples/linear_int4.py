"""A linear layer with 4-bit weights: two per byte, one scale per group of a row's inputs."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def linear_int4(
    M,
    N,
    K,
    gelu=False,
    group=32,  # inputs of a row that share a scale
    block_M=64,
    block_N=64,
    block_K=32,
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """With gelu, Y = gelu(X @ D^T). Without gelu, Y = X @ D^T.

    D is W dequantised: D[n, k] = (nibble - 8) * S[n, k // group], in the type of S. W holds two weights per byte: the
    nibble of an even k is the lower half of byte k // 2 of row n. K must be a multiple of the group.
    """
    accum_dtype = "float32"

    @T.prim_func
    def linear_int4_kernel(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K // 2), "uint8"),
        S: T.Tensor((N, K // group), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            packed = T.alloc_shared((block_N, block_K // 2), "uint8")
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(Y_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * (block_K // 2)], packed)
                # Weights are dequantised from shared memory to shared memory. A row has block_K / group scales per
                # iteration, which are loaded where they are used: TMA and cp.async copy 16 or 4 bytes at least.
                for i, j in T.Parallel(block_N, block_K):
                    nibble = (packed[i, j // 2] >> T.cast(4 * (j % 2), "uint8")) & T.cast(15, "uint8")
                    scale = S[bx * block_N + i, (ko * block_K + j) // group]
                    W_shared[i, j] = T.cast(T.cast(nibble, "int32") - 8, dtype) * scale
                T.gemm(X_shared, W_shared, Y_local, transpose_B=True)

            if gelu:
                for i, j in T.Parallel(block_M, block_N):
                    Y_local[i, j] = 0.5 * Y_local[i, j] * (1 + T.erf(Y_local[i, j] * 0.70710678))
            T.copy(Y_local, Y[by * block_M, bx * block_N])

    return linear_int4_kernel
