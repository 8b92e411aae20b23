"""Persistent GEMM: one block per SM loops over output tiles."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_persistent(
    M,
    N,
    K,
    programs=132,  # blocks of the persistent grid: one per SM of an H200
    panel=12,  # rows of tiles per rasterisation group
    block_M=128,
    block_N=256,
    block_K=64,
    num_stages=3,
    threads=256,
    dtype="float16",
):
    """C = relu(A @ B)."""

    @T.prim_func
    def gemm_persistent_kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(programs, threads=threads) as block:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)  # for K = 0; else a tile's first MMA overwrites it

            # Grouped rasterisation, so that concurrent blocks share operands in L2.
            for bx, by in T.Persistent(
                [T.ceildiv(N, block_N), T.ceildiv(M, block_M)], programs, block, group_size=panel
            ):
                for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                    T.copy(A[by * block_M, ko * block_K], A_shared)
                    T.copy(B[ko * block_K, bx * block_N], B_shared)
                    T.gemm(A_shared, B_shared, C_local, clear_accum=ko == 0)
                # Fused ReLU: C is stored once.
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] = T.max(C_local[i, j], 0)
                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm_persistent_kernel
