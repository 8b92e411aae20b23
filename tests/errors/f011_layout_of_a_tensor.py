import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            T.annotate_layout({A: tilelang.layout.make_swizzled_layout(A)})
            T.copy(A[bx * block_M, 0], B[bx * block_M, 0])

    return main

# ---- expected ----
# error[T2C-F011]: `A` is a tensor in global memory; such a layout of it is not supported yet
#   --> f011_layout_of_a_tensor.py:10:13
#    |
# 10 |             T.annotate_layout({A: tilelang.layout.make_swizzled_layout(A)})
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write T.Layout(shape, lambda i, j: ...)
