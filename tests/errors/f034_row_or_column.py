import tilelang
import tilelang.language as T


@tilelang.jit
def kernel():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_fragment((64, 64), "float32")
            b = T.alloc_fragment((64,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            a *= b
            T.copy(a, A)

    return main

# ---- expected ----
# error[T2C-F034]: a vector of 64 elements next to a tile of (64, 64) could be one of rows or of columns
#   --> f034_row_or_column.py:14:13
#    |
# 14 |             a *= b
#    |             ^^^^^^
#   = help: write v[:, None] for one value per row, v[None, :] for one value per column
