import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "int8")
            B_local = T.alloc_fragment((32, 64), "int8")
            C_local = T.alloc_fragment((64, 64), "int32")
            T.gemm(A_shared, B_local, C_local)

    return main

# ---- expected ----
# error[T2C-S003]: `B_local` cannot be an operand of T.gemm where it is
#   --> s003_operand_in_registers.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_local, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: in registers, A may not be transposed, and B must have elements of 16 bits
#   = help: T.copy `B_local` to a shared tile first
