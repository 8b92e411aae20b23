import tilelang.language as T


@T.prim_func
def ends(A: T.Tensor((64,), "float32")):
    with T.launch_thread("threadIdx.x", 32):
        A[0] = 0.0
# ---- expected ----
# error[T2C-F025]: a thread index is used outside of `with T.Kernel(...)`
#  --> f025_thread_outside_of_kernel.py:6:10
#   |
# 6 |     with T.launch_thread("threadIdx.x", 32):
#   |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: put it into the block of `with T.Kernel(blocks, threads=128) as bx:`
