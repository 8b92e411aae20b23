import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_local = T.alloc_fragment((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm(A_shared, B_local, C_local)

    return main

# ---- expected ----
# error[T2C-S003]: `B_local` cannot be an operand of T.gemm where it is
#   --> s003_operand_in_registers.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_local, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: A may be a shared tile, or a fragment that is not transposed; B must be a shared tile
#   = help: T.copy `B_local` to a shared tile first
