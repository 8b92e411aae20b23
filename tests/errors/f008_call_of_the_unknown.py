import tilelang
import tilelang.language as T
from tilelang.intrinsics.mma_macro_generator import TensorCoreIntrinEmitter


@tilelang.jit(out_idx=[-1])
def kernel(M, N, block_M=64):
    mma_emitter = TensorCoreIntrinEmitter(a_dtype="float16", chunk=32)

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            A_shared = T.alloc_shared((block_M, 32), "float16")
            T.copy(A[bx * block_M, 0], A_shared)
            mma_emitter.ldmatrix_a(A_shared, 0)

    return main

# ---- expected ----
# error[T2C-F008]: only running the file would show what `mma_emitter.ldmatrix_a(A_shared, 0)` does
#   --> f008_call_of_the_unknown.py:15:13
#    |
# 15 |             mma_emitter.ldmatrix_a(A_shared, 0)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: write it with operations of the tile language, or as a T.macro in this file or one next to it
