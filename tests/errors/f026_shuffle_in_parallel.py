import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            for i in T.Parallel(64):
                B[bx, i] = T.shfl_xor(A[bx, i], 1)

    return main

# ---- expected ----
# error[T2C-F026]: T.shfl_xor works among threads; it cannot be inside T.Parallel, whose elements tile2cu spreads over them
#   --> f026_shuffle_in_parallel.py:11:28
#    |
# 11 |                 B[bx, i] = T.shfl_xor(A[bx, i], 1)
#    |                            ^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write the loop over the thread index, T.get_thread_binding()
