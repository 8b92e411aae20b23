import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(X[bx * 64, k * 32], A_shared)
                T.clear(A_shared)

    return main

# ---- expected ----
# error[T2C-P001]: `A_shared` is loaded ahead, and written again in the same turn of the loop
#   --> p001_loaded_and_written.py:15:17
#    |
# 15 |                 T.clear(A_shared)
#    |                 ^^^^^^^^^^^^^^^^^
# note: it is loaded here
#   --> p001_loaded_and_written.py:14:17
#    |
# 14 |                 T.copy(X[bx * 64, k * 32], A_shared)
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: use another shared tile for the second value, or num_stages=0
