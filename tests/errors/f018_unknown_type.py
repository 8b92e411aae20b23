import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "flaot16")

    return main

# ---- expected ----
# error[T2C-F018]: the type of T.alloc_shared: 'flaot16' is no element type
#   --> f018_unknown_type.py:10:24
#    |
# 10 |             A_shared = T.alloc_shared((block_M, 32), "flaot16")
#    |                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: did you mean `float16`?
