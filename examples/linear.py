"""Linear layers of a transformer: GEMM with weights in their usual layout, (outputs, inputs), with fused epilogues."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def linear(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128, dtype="float16"):
    """Y = X @ W^T."""
    accum_dtype = "float32"

    @T.prim_func
    def linear_kernel(X: T.Tensor((M, K), dtype), W: T.Tensor((N, K), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(Y_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * block_K], W_shared)
                T.gemm(X_shared, W_shared, Y_local, transpose_B=True)
            T.copy(Y_local, Y[by * block_M, bx * block_N])

    return linear_kernel


@tilelang.jit(out_idx=[-1])
def linear_residual(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128, dtype="float16"):
    """Y = X @ W^T + R."""
    accum_dtype = "float32"

    @T.prim_func
    def linear_residual_kernel(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        R: T.Tensor((M, N), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            Y_local = T.alloc_fragment((block_M, block_N), accum_dtype)

            T.clear(Y_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * block_K], W_shared)
                T.gemm(X_shared, W_shared, Y_local, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                Y_local[i, j] += R[by * block_M + i, bx * block_N + j]
            T.copy(Y_local, Y[by * block_M, bx * block_N])

    return linear_residual_kernel
