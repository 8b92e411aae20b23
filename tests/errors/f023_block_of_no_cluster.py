# tile2cu: --target cuda:sm_90a
import tilelang.language as T


@T.prim_func
def copied(A: T.Tensor((64,), "float32")):
    with T.ClusterKernel(8, threads=32, cluster_dims=2) as bx:
        mine = T.alloc_shared((64,), "float32")
        theirs = T.alloc_shared((64,), "float32")
        T.copy(A, mine)
        T.copy_cluster(mine, theirs, dst_block=2)

# ---- expected ----
# error[T2C-F023]: `dst_block` of T.copy_cluster is 2; the cluster has 2 blocks
#   --> f023_block_of_no_cluster.py:11:9
#    |
# 11 |         T.copy_cluster(mine, theirs, dst_block=2)
#    |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: `cluster_dims` of T.ClusterKernel states how many there are; ranks count from 0
