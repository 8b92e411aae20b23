import tilelang.language as T


@T.prim_func
def ends(A: T.Tensor((64,), "float32")):
    value = A[T.Ramp(0, 1, 4)]
    with T.Kernel(1, threads=32) as bx:
        A[bx] = 0.0
# ---- expected ----
# error[T2C-F025]: an operation is used outside of `with T.Kernel(...)`
#  --> f025_vector_outside_of_kernel.py:6:5
#   |
# 6 |     value = A[T.Ramp(0, 1, 4)]
#   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: put it into the block of `with T.Kernel(blocks, threads=128) as bx:`
