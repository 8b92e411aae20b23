import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            pair = T.alloc_local((2,), "float32")
            pair[2] = 0

    return main

# ---- expected ----
# error[T2C-F024]: index 2 is outside of dimension 0 of `pair` of 2 elements
#   --> f024_outside.py:11:13
#    |
# 11 |             pair[2] = 0
#    |             ^^^^^^^^^^^
