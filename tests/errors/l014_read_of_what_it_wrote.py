import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_fragment((64,), "float32")
            T.clear(S)
            for i in T.Parallel(64):
                S[63 - i] = 1.0
                Y[bx, i] = S[i // 2]

    return main

# ---- expected ----
# error[T2C-L014]: the element read here of `S` may be one that the same iteration has written to another thread
#   --> l014_read_of_what_it_wrote.py:14:17
#    |
# 14 |                 Y[bx, i] = S[i // 2]
#    |                 ^^^^^^^^^^^^^^^^^^^^
# note: this loop writes `S` in other threads
#   --> l014_read_of_what_it_wrote.py:12:13
#    |
# 12 |             for i in T.Parallel(64):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: read it in a second T.Parallel loop, or above the store
