# SPDX-License-Identifier: MIT
"""C = A B with TMA multicast: the first block of each cluster loads the tile of A for all of its blocks.

An explicit pipeline: the third warpgroup loads, the other two multiply. A stage is empty when the consumers of all
blocks have arrived at every block's barrier, as each may load into the others.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_cluster(M, N, K, block_M=128, block_N=256, block_K=64, stages=3, cluster=2):
    mask = (1 << cluster) - 1
    across = block_N * cluster

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.ClusterKernel(
            T.ceildiv(N, across) * cluster, T.ceildiv(M, block_M), threads=384, cluster_dims=(cluster, 1, 1)
        ) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), "float16")
            B_shared = T.alloc_shared((stages, block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            full = T.alloc_barrier([128] * stages)
            # each consumer warp of each block arrives once
            empty = T.alloc_cluster_barrier([8 * cluster] * stages)
            T.cluster_sync()

            with T.ws(0, 1):
                T.clear(C_local)
            for k in T.serial(T.ceildiv(K, block_K)):
                stage = k % stages
                phase = (k // stages) % 2
                with T.ws(2):
                    T.mbarrier_wait_parity(empty[stage], phase ^ 1)
                    # a cluster's blocks have equal rows and different columns
                    T.tma_copy(
                        A[by * block_M, k * block_K], A_shared[stage, :, :], barrier=full[stage], cluster_mask=mask
                    )
                    T.tma_copy(B[k * block_K, bx * block_N], B_shared[stage, :, :], barrier=full[stage])
                    T.mbarrier_arrive(full[stage])
                with T.ws(0, 1):
                    T.mbarrier_wait_parity(full[stage], phase)
                    T.gemm(A_shared[stage, :, :], B_shared[stage, :, :], C_local)
                    if T.get_thread_binding() % 32 == 0:
                        for rank in T.unroll(cluster):
                            T.mbarrier_arrive(empty[stage], rank)
            with T.ws(0, 1):
                T.copy(C_local, C[by * block_M, bx * block_N])

    return main
