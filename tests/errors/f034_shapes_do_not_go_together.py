import tilelang
import tilelang.language as T


@tilelang.jit
def kernel():
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor((16, 32), "float32")):
        with T.Kernel(1) as bx:
            a = T.alloc_fragment((64, 32), "float32")
            b = T.alloc_fragment((16, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            c = T.exp(a - b)
            T.copy(c, A)

    return main

# ---- expected ----
# error[T2C-F034]: tiles of shape (64, 32) and (16, 32) do not go together element by element
#   --> f034_shapes_do_not_go_together.py:14:23
#    |
# 14 |             c = T.exp(a - b)
#    |                       ^^^^^
