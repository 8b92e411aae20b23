import tilelang
import tilelang.language as T


@tilelang.jit
def factory(M):
    @T.prim_func
    def main(C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            E_shared = T.alloc_shared((64, 8), "int16")
            B_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.gemm_sp(A_shared, E_shared, B_shared, C_local)
            T.copy(C_local, C)

    return main
# ---- expected ----
# error[T2C-F021]: T.gemm_sp: `A_shared` (64, 32) denotes (64, 64), and goes with B of 64 by N, `E_shared` of (64, 4) and C of 64 by N
#   --> f021_metadata_of_another_k.py:14:13
#    |
# 14 |             T.gemm_sp(A_shared, E_shared, B_shared, C_local)
#    |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#   = help: `E_shared` has 4 bits for each four elements along K
