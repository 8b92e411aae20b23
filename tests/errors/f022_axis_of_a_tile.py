import tilelang.language as T


@T.prim_func
def rows(X: T.Tensor((16, 32), "float32"), Y: T.Tensor((16,), "float32")):
    with T.Kernel(1, threads=128):
        x = T.alloc_fragment((16, 32), "float32")
        T.copy(X, x)
        T.copy(T.max(x, axis=2), Y)
# ---- expected ----
# error[T2C-F022]: `x` has no dimension 2
#  --> f022_axis_of_a_tile.py:9:16
#   |
# 9 |         T.copy(T.max(x, axis=2), Y)
#   |                ^^^^^^^^^^^^^^^^
#   = help: its axes are 0 and 1, or -2 and -1
