import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            S = T.alloc_shared((64, 64), "float32")
            T.fill(S[0, :], 1)

    return main

# ---- expected ----
# error[T2C-E002]: only whole tiles can be filled, and this is a part of `S`
#   --> e002_fill_of_a_part.py:11:13
#    |
# 11 |             T.fill(S[0, :], 1)
#    |             ^^^^^^^^^^^^^^^^^^
#   = help: write the elements in a T.Parallel loop
