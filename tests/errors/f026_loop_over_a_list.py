import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for k in [0, 1]:
                B[bx, k] = A[bx, k]

    return main

# ---- expected ----
# error[T2C-F026]: a loop of a kernel cannot go through a list
#   --> f026_loop_over_a_list.py:10:13
#    |
# 10 |             for k in [0, 1]:
#    |             ^^^^^^^^^^^^^^^^
#   = help: use range, T.serial, T.unroll, T.Pipelined or T.Parallel; loops over Python values belong in a helper
