import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((bx + 1, 32), "float16")

    return main

# ---- expected ----
# error[T2C-F007]: the shape of T.alloc_shared must be known at transpile time: it depends on `bx`
#   --> f007_shape_depends_on_block.py:10:24
#    |
# 10 |             A_shared = T.alloc_shared((bx + 1, 32), "float16")
#    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
