# tile2cu: --target hip:gfx942
import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(
        A: T.Tensor((64, 32), "float16"),
        E: T.Tensor((64, 4), "int16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=256) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            E_shared = T.alloc_shared((64, 4), "int16")
            B_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.copy(A, A_shared)
            T.copy(E, E_shared)
            T.copy(B, B_shared)
            T.clear(C_local)
            T.gemm_sp(A_shared, E_shared, B_shared, C_local)
            T.copy(C_local, C)

    return main
# ---- expected ----
# error[T2C-S008]: no instruction of hip:gfx942 multiplies a sparse matrix of float16 by float16 into float32
#   --> s008_sparse_on_amd.py:24:13
#    |
# 24 |             T.gemm_sp(A_shared, E_shared, B_shared, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = note: from sm_80 on, NVIDIA's multiply float16 and bfloat16 into float32 and int8 into int32, from sm_89 on float8 into float32
#   = help: write the zeros of A, too, and T.gemm
