import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            A_local = T.alloc_fragment((64, 64), "float32")
            sums = T.alloc_fragment((64,), "float32")
            T.copy(A[bx * 64, 0], A_local)
            T.reduce_sum(A_local, sums, dim=1)
            with T.ws(0):
                T.copy(sums, B[bx * 64])

    return main

# ---- expected ----
# error[T2C-P003]: the groups of the block run independently, and would all exchange partial results in the same workspace
#   --> p003_reduction_by_all_groups.py:13:13
#    |
# 13 |             T.reduce_sum(A_local, sums, dim=1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: put it under the `with T.ws(group):` of the group that needs it
