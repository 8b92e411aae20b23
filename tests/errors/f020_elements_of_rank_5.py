import tilelang.language as T


@T.prim_func
def twice(X: T.Tensor((2, 2, 2, 2, 2), "float32")):
    with T.Kernel(1, threads=32):
        x = T.alloc_fragment((2, 2, 2, 2, 2), "float32")
        x *= 2.0
# ---- expected ----
# error[T2C-F020]: an operation on elements has at most 4 dimensions
#  --> f020_elements_of_rank_5.py:8:9
#   |
# 8 |         x *= 2.0
#   |         ^^^^^^^^
#   = help: write it as a loop over parts with fewer
