import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(M, N, block=64):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)
            T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullCol)

    return main

# ---- expected ----
# error[T2C-L001]: two rules want a different layout for `C_local`
#   --> l001_two_layouts.py:14:13
#    |
# 14 |             T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullCol)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: `layout.gemm.mma-accumulator` asks for MmaAccumulator(rows=64, cols=64, warps=Warps(m=1, n=4))
# note: `layout.gemm.mma-accumulator` asked for MmaAccumulator(rows=64, cols=64, warps=Warps(m=4, n=1))
#   --> l001_two_layouts.py:13:13
#    |
# 13 |             T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: copy the tile through shared memory between the two uses, or use two tiles
