import tilelang
import tilelang.language as T
from helpers import rows_a_block


@tilelang.jit(out_idx=[-1])
def kernel(M, N):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, rows_a_block(N))) as bx:
            B[bx, 0] = 0

    return main

# ---- expected ----
# error[T2C-F008]: an argument of T.ceildiv needs `rows_a_block(N)`, which is known only by running the file
#   --> f008_module_that_is_not_there.py:10:23
#    |
# 10 |         with T.Kernel(T.ceildiv(M, rows_a_block(N))) as bx:
#    |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# note: it could not be evaluated: `helpers` is no file next to this one
#   --> f008_module_that_is_not_there.py:10:36
#    |
# 10 |         with T.Kernel(T.ceildiv(M, rows_a_block(N))) as bx:
#    |                                    ^^^^^^^^^^^^^^^
#   = help: tile2cu reads the file without running it; make the value a parameter and bind it with -D
