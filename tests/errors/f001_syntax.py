import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(A):
    with T.Kernel(T.ceildiv(1024, 128)) as bx
        T.clear(A)

# ---- expected ----
# error[T2C-F001]: syntax error: expected ':'
#  --> f001_syntax.py:7:46
#   |
# 7 |     with T.Kernel(T.ceildiv(1024, 128)) as bx
#   |                                              ^
