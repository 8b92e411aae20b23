import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, scale, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for k in T.serial(N):
                B[bx, k] = A[bx, k] * scale

    return main

# ---- expected ----
# error[T2C-F006]: `scale` is left unbound, and no tensor's shape gives its value
#  --> f006_number_that_no_shape_gives.py:8:9
#   |
# 8 |     def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
#   |         ^^^^
#   = help: bind it with `-D scale=...`, a default, or a call in the file
