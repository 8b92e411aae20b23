import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            B_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float16")
            T.gemm(C_local, B_shared, C_local, transpose_A=True)

    return main

# ---- expected ----
# error[T2C-S003]: `C_local` cannot be an operand of T.gemm where it is
#   --> s003_operand_in_registers.py:12:13
#    |
# 12 |             T.gemm(C_local, B_shared, C_local, transpose_A=True)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: in registers, A may not be transposed or of 4 bits, and B must have elements of 16 bits
#   = help: T.copy `C_local` to a shared tile first
