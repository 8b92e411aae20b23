"""GEMM with a fused ReLU, in the eager form: the sizes come from the tensors that the kernel is called with."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm_relu_eager(A, B, block_M=128, block_N=128, block_K=32, num_stages=3, threads=128):
    """C = relu(A @ B)."""
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C = T.empty((M, N), T.float16)

    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), A.dtype)
        B_shared = T.alloc_shared((block_K, block_N), B.dtype)
        C_local = T.alloc_fragment((block_M, block_N), T.float32)

        T.clear(C_local)
        for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M, ko * block_K], A_shared)
            T.copy(B[ko * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)

        # Fused ReLU: C is stored once.
        for i, j in T.Parallel(block_M, block_N):
            C_local[i, j] = T.max(C_local[i, j], 0)

        T.copy(C_local, C[by * block_M, bx * block_N])

    return C


if __name__ == "__main__":
    import torch

    A = torch.randn(4096, 4096, dtype=torch.float16, device="cuda")
    B = torch.randn(4096, 4096, dtype=torch.float16, device="cuda")
    C = gemm_relu_eager(A, B)
