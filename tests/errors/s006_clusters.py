import tilelang.language as T


@T.prim_func
def ranks(A: T.Tensor((8,), "int32")):
    with T.ClusterKernel(8, threads=32, cluster_dims=2) as bx:
        A[bx] = T.block_rank_in_cluster()

# ---- expected ----
# error[T2C-S006]: sm_80 has no clusters of blocks
#  --> s006_clusters.py:7:9
#   |
# 7 |         A[bx] = T.block_rank_in_cluster()
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write `with T.Kernel(...)` without `cluster_dims`, and let each block load what it needs, or take cuda:sm_90a
