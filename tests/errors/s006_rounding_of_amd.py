# tile2cu: --target hip:gfx942
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            for i in T.Parallel(block_M):
                B[bx * block_M + i, 0] = T.ieee_add(A[bx * block_M + i, 0], 1.0, "rz")

    return main

# ---- expected ----
# error[T2C-S006]: gfx942 has no instruction with a rounding mode other than nearest
#   --> s006_rounding_of_amd.py:12:17
#    |
# 12 |                 B[bx * block_M + i, 0] = T.ieee_add(A[bx * block_M + i, 0], 1.0, "rz")
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write `rounding_mode="rn"`
