import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, K, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for k in T.serial(K):
                B[bx, k] = A[bx, k]

    return main

# ---- expected ----
# error[T2C-F006]: `K` is left unbound, and no tensor's shape gives its value
#  --> f006_size_that_no_shape_gives.py:8:9
#   |
# 8 |     def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
#   |         ^^^^
#   = help: bind it with `-D K=...`, a default, or a call in the file
