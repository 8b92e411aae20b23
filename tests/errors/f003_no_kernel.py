import tilelang
import tilelang.language as T


def helper(x):
    return T.max(x, 0)

# ---- expected ----
# error[T2C-F003]: the file has no kernel
#  --> f003_no_kernel.py:1:1
#   |
# 1 | import tilelang
#   | ^^^^^^^^^^^^^^^
#   = help: a kernel is a @tilelang.jit function with `with T.Kernel(...)`, or one that returns a @T.prim_func
