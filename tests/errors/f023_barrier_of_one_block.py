# tile2cu: --target cuda:sm_90a
import tilelang.language as T


@T.prim_func
def told(A: T.Tensor((64,), "float32")):
    with T.ClusterKernel(8, threads=32, cluster_dims=2) as bx:
        there = T.alloc_barrier(32)
        T.mbarrier_arrive(there, 0)

# ---- expected ----
# error[T2C-F023]: `there` is a barrier of one block, at which no other one arrives
#  --> f023_barrier_of_one_block.py:9:9
#   |
# 9 |         T.mbarrier_arrive(there, 0)
#   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.alloc_cluster_barrier
