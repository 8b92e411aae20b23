import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M), threads=256) as bx:
            T.copy(A[bx, 0:8], B[bx, 0:8])
            T.sync_grid()

    return main

# ---- expected ----
# error[T2C-F011]: T.sync_grid is not supported yet
#   --> f011_barrier_of_the_grid.py:11:13
#    |
# 11 |             T.sync_grid()
#    |             ^^^^^^^^^^^
#   = help: end the kernel there, and go on in a second `with T.Kernel(...)`: T.alloc_global keeps what they share
