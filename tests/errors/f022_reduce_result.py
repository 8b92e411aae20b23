import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            scores = T.alloc_fragment((64, 32), "float32")
            scores_max = T.alloc_fragment((32,), "float32")
            T.reduce_max(scores, scores_max, dim=1)

    return main

# ---- expected ----
# error[T2C-F022]: T.reduce_max of `scores` (64, 32) along dimension 1 gives (64,), but `scores_max` is (32,)
#   --> f022_reduce_result.py:12:13
#    |
# 12 |             T.reduce_max(scores, scores_max, dim=1)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
