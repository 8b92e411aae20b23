# tile2cu: --target hip:gfx942
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = T.shfl_xor(A[bx, 0], 1, mask=0xFFFF)

    return main

# ---- expected ----
# error[T2C-F011]: T.shfl_xor among a part of a warp's lanes is not supported on AMD
#   --> f011_part_of_a_warp.py:11:24
#    |
# 11 |             B[bx, 0] = T.shfl_xor(A[bx, 0], 1, mask=0xFFFF)
#    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: let all lanes take part, and leave `mask` out: choose values with T.if_then_else
