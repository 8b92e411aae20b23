import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "int8")
            B_shared = T.alloc_shared((32, 64), "int8")
            C_local = T.alloc_fragment((64, 64), "int32")
            T.gemm(A_shared, B_shared, C_local)

    return main

# ---- expected ----
# error[T2C-S004]: int8 operands must have K along their rows, and B has it along its columns
#   --> s004_int8_columns.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_shared, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: ldmatrix transposes 16-bit elements only (PTX ISA, 'ldmatrix')
#   = help: keep A as (M, K) and B as (N, K) with transpose_B=True
