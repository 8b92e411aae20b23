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
                S[i] = S[63 - i]

    return main

# ---- expected ----
# error[T2C-L014]: `S` is spread over threads and can only be indexed by the loop's own variables here
#   --> l014_index_of_a_fragment.py:13:17
#    |
# 13 |                 S[i] = S[63 - i]
#    |                 ^^^^^^^^^^^^^^^^
# note: this loop runs over i
#   --> l014_index_of_a_fragment.py:12:13
#    |
# 12 |             for i in T.Parallel(64):
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: index it by i or one of them, or keep the tile in shared memory
