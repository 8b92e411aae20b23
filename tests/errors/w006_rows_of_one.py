import tilelang
import tilelang.language as T


@tilelang.jit
def kernel():
    @T.prim_func
    def main(A: T.Tensor((1, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((1, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((1, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            acc = T.alloc_fragment((1, 64), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.gemm(A_shared, B_shared, acc, clear_accum=True)
            T.copy(acc, C)
    return main


# ---- expected ----
# warning[T2C-W006]: the GEMM runs on scalar FMA, not on tensor cores
#   --> w006_rows_of_one.py:15:13
#    |
# 15 |             T.gemm(A_shared, B_shared, acc, clear_accum=True)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: 1 x 64 x 64 is smaller than the shape of an MMA instruction
#   = help: tensor cores need larger tiles
