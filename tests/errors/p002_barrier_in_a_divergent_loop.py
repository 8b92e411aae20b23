import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_shared((64, 64), "float32")
            tx = T.get_thread_binding(0)
            for i in T.serial(tx // 2):
                S[tx // 2, i] = 1
                Y[bx, tx] = S[63 - tx // 2, i]

    return main

# ---- expected ----
# error[T2C-P002]: a barrier is needed here, inside a loop that diverges within the block
#   --> p002_barrier_in_a_divergent_loop.py:14:17
#    |
# 14 |                 Y[bx, tx] = S[63 - tx // 2, i]
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
# note: the loop depends on the thread
#   --> p002_barrier_in_a_divergent_loop.py:12:13
#    |
# 12 |             for i in T.serial(tx // 2):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: move the copy out of the loop, make it the same for all threads, or write all barriers yourself: `pass_configs={'tl.disable_thread_storage_sync': True}`
