# tile2cu: --target hip:gfx942
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            S = T.alloc_shared((64, 64), "float16")
            T.ptx_cp_async(T.access_ptr(S[0, 0], "w", 8), T.access_ptr(A[bx, 0], "r", 8), 8)

    return main

# ---- expected ----
# error[T2C-S006]: gfx942 has no cp.async
#   --> s006_cp_async_of_amd.py:12:13
#    |
# 12 |             T.ptx_cp_async(T.access_ptr(S[0, 0], "w", 8), T.access_ptr(A[bx, 0], "r", 8), 8)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.copy
