import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    assert block_M % 48 == 0, f"block_M={block_M} is no multiple of 48"

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F019]: the assertion fails: block_M=64 is no multiple of 48
#  --> f019_assertion.py:7:5
#   |
# 7 |     assert block_M % 48 == 0, f"block_M={block_M} is no multiple of 48"
#   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
