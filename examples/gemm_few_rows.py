"""GEMM with at most a few dozen rows, which takes as long as its weights take to load.

A tile of C is one block's for each part of K, so that enough blocks load at once. They are a cluster, and add their
parts in shared memory: there is no workspace and no second kernel.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_few_rows(
    M,
    N,
    K,
    splits=2,  # parts of K, and blocks of a cluster: 1, 2, 4 or 8, for 100 blocks or more
    block_M=16,
    block_N=64,
    block_K=128,
    num_stages=4,
    threads=128,
    dtype="float16",
):
    """C = relu(A @ B). The first block of a cluster adds the parts of K, always in the same order."""
    accum_dtype = "float32"

    @T.prim_func
    def gemm_few_rows_kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(
            splits, T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads, cluster_dims=(splits, 1, 1)
        ) as (part, bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_part = T.alloc_shared((block_M, block_N), accum_dtype)
            C_parts = T.alloc_shared((splits * block_M, block_N), accum_dtype)  # of all blocks, in the first one

            tiles = T.ceildiv(T.ceildiv(K, block_K), splits)
            first = part * tiles
            T.clear(C_local)
            for ko in T.Pipelined(tiles, num_stages=num_stages):
                # by threads: rows may start anywhere, and 16 rows of a tile leave wgmma nothing to gain
                T.copy(A[by * block_M, (first + ko) * block_K], A_shared, disable_tma=True)
                T.copy(B[(first + ko) * block_K, bx * block_N], B_shared, disable_tma=True)
                T.gemm(A_shared, B_shared, C_local)

            T.copy(C_local, C_part)
            T.copy_cluster(C_part, C_parts[part * block_M : (part + 1) * block_M, :], dst_block=0)
            T.cluster_sync()
            if part == 0:
                T.clear(C_local)
                for other in T.serial(splits):
                    for i, j in T.Parallel(block_M, block_N):
                        C_local[i, j] += C_parts[other * block_M + i, j]
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] = T.max(C_local[i, j], 0)
                T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm_few_rows_kernel
