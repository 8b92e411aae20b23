import os

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N):
    block_M = int(os.environ["BLOCK_M"])

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            T.copy(A[bx * block_M, 0], A_shared)

    return main

# ---- expected ----
# error[T2C-F008]: an argument of T.ceildiv needs `os.environ["BLOCK_M"]`, which is known only by running the file
#   --> f008_needs_running_the_file.py:13:23
#    |
# 13 |         with T.Kernel(T.ceildiv(M, block_M)) as bx:
#    |                       ^^^^^^^^^^^^^^^^^^^^^
# note: it comes from here
#  --> f008_needs_running_the_file.py:9:19
#   |
# 9 |     block_M = int(os.environ["BLOCK_M"])
#   |                   ^^^^^^^^^^^^^^^^^^^^^
#   = help: set the variable with --env BLOCK_M=VALUE; the environment is not read
