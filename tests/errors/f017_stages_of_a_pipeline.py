import tilelang
import tilelang.language as T


@tilelang.jit
def k(M=1024, K=1024):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((M, K), "float16")):
        with T.Kernel(T.ceildiv(M, 64), threads=128) as bx:
            As = T.alloc_shared((64, 64), "float16")
            for ko in T.Pipelined(K // 64, stages=3):
                T.copy(A[bx * 64, ko * 64], As)
                T.copy(As, B[bx * 64, ko * 64])
    return main


# ---- expected ----
# error[T2C-F017]: T.Pipelined: got an unexpected keyword argument 'stages'
#   --> f017_stages_of_a_pipeline.py:11:13
#    |
# 11 |             for ko in T.Pipelined(K // 64, stages=3):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: did you mean `num_stages`?
