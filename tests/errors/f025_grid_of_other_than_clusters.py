# tile2cu: --target cuda:sm_90a
import tilelang.language as T


@T.prim_func
def ranks(A: T.Tensor((9,), "int32")):
    with T.ClusterKernel(9, threads=32, cluster_dims=(2, 1, 1)) as bx:
        A[bx] = T.block_rank_in_cluster()

# ---- expected ----
# error[T2C-F025]: the grid has 9 blocks along x, which are no clusters of 2
#  --> f025_grid_of_other_than_clusters.py:7:10
#   |
# 7 |     with T.ClusterKernel(9, threads=32, cluster_dims=(2, 1, 1)) as bx:
#   |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: make the grid's extent a multiple of the cluster's
