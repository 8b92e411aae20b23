# SPDX-License-Identifier: MIT
"""C = A B, whose blocks share loads: of each cluster the first one loads the rows of A for all of it (TMA multicast).

A pipeline by hand: the third warpgroup loads, the other two multiply. A slot is free when the consumers of all blocks
have said so to every block, as any of them may be loading into it for the others.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_cluster(M, N, K, block_M=128, block_N=256, block_K=64, stages=3, cluster=2):
    all_blocks = (1 << cluster) - 1
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
            loaded = T.alloc_barrier([128] * stages)
            # each consumer warp of each block arrives once
            released = T.alloc_cluster_barrier([8 * cluster] * stages)
            T.cluster_sync()

            with T.ws(0, 1):
                T.clear(C_local)
            for k in T.serial(T.ceildiv(K, block_K)):
                slot = k % stages
                turn = (k // stages) % 2
                with T.ws(2):
                    T.mbarrier_wait_parity(released[slot], turn ^ 1)
                    # the blocks of a cluster have the same rows, and other columns
                    T.tma_copy(
                        A[by * block_M, k * block_K], A_shared[slot, :, :], barrier=loaded[slot], cluster_mask=all_blocks
                    )
                    T.tma_copy(B[k * block_K, bx * block_N], B_shared[slot, :, :], barrier=loaded[slot])
                    T.mbarrier_arrive(loaded[slot])
                with T.ws(0, 1):
                    T.mbarrier_wait_parity(loaded[slot], turn)
                    T.gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                    if T.get_thread_binding() % 32 == 0:
                        for rank in T.unroll(cluster):
                            T.mbarrier_arrive(released[slot], rank)
            with T.ws(0, 1):
                T.copy(C_local, C[by * block_M, bx * block_N])

    return main
