"""GEMM whose tiles are too few for all SMs: blocks of a cluster have a part of K each, and each adds a strip of rows.

Each block sends the other blocks' rows of its sums to them, through distributed shared memory: there is no workspace
and no second kernel, and the parts are added in the same order in each run.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_clusters(
    M,
    N,
    K,
    splits=2,  # parts of K, and blocks of a cluster: a divisor of block_M, at most 8
    block_M=128,
    block_N=128,
    block_K=64,
    num_stages=4,
    threads=256,
    dtype="float16",
):
    """C = relu(A @ B). Block `part` of a cluster computes a part of K, and stores its strip of the tile."""
    accum_dtype = "float32"
    assert block_M % splits == 0, "each block of a cluster adds as many rows of the tile"
    strip = block_M // splits  # rows that a block adds and stores

    @T.prim_func
    def gemm_clusters_kernel(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        # clusters that start together share columns of B
        with T.Kernel(
            splits, T.ceildiv(M, block_M), T.ceildiv(N, block_N), threads=threads, cluster_dims=(splits, 1, 1)
        ) as (part, by, bx):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_part = T.alloc_shared((block_M, block_N), accum_dtype)  # of this part of K, all rows
            C_strips = T.alloc_shared((splits * strip, block_N), accum_dtype)  # of all parts, this block's rows
            C_strip = T.alloc_fragment((strip, block_N), accum_dtype)

            tiles = T.ceildiv(T.ceildiv(K, block_K), splits)
            first = part * tiles
            T.clear(C_local)
            for ko in T.Pipelined(tiles, num_stages=num_stages):
                T.copy(A[by * block_M, (first + ko) * block_K], A_shared)
                T.copy(B[(first + ko) * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)

            T.copy(C_local, C_part)
            T.cluster_sync()  # no block reads its operands any more: the strips may take their memory
            for step in T.serial(splits):
                other = (part + step) % splits  # at a time each block sends to another one
                T.copy_cluster(
                    C_part[other * strip : (other + 1) * strip, :],
                    C_strips[part * strip : (part + 1) * strip, :],
                    dst_block=other,
                )
            T.cluster_sync()
            T.clear(C_strip)
            for other in T.serial(splits):
                for i, j in T.Parallel(strip, block_N):
                    C_strip[i, j] += C_strips[other * strip + i, j]
            for i, j in T.Parallel(strip, block_N):
                C_strip[i, j] = T.max(C_strip[i, j], 0)
            T.copy(C_strip, C[by * block_M + part * strip, bx * block_N])

    return gemm_clusters_kernel
