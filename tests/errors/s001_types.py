import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            B_shared = T.alloc_shared((64, 64), "int16")
            C_local = T.alloc_fragment((64, 64), "int16")
            T.gemm(C_local, B_shared, C_local)

    return main

# ---- expected ----
# error[T2C-S001]: no instruction of cuda:sm_80 multiplies int16 by int16 into int16, and `C_local` is in registers
#   --> s001_types.py:12:13
#    |
# 12 |             T.gemm(C_local, B_shared, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: it has bfloat16 x bfloat16 -> float32, float16 x float16 -> float16, float16 x float16 -> float32, float32 x float32 -> float32, float64 x float64 -> float64, float8_e4m3fn x float8_e4m3fn -> float32, float8_e4m3fnuz x float8_e4m3fnuz -> float32, float8_e5m2 x float8_e5m2 -> float32, float8_e5m2fnuz x float8_e5m2fnuz -> float32, int4 x int4 -> int32, int8 x int8 -> int32, tfloat32 x tfloat32 -> float32, uint4 x uint4 -> int32
#   = help: use one of these types, or T.copy `C_local` to a shared tile
