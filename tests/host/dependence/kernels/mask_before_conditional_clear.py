import tilelang
import tilelang.language as T


@tilelang.jit
def mask_before_conditional_clear(N, threads=128):
    @T.prim_func
    def main(
        Z: T.Tensor((N, 64), "float16"), limit: T.int32, first: T.int32, Out: T.Tensor((64, 64), "float32")
    ):
        with T.Kernel(1, threads=threads) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for k in T.serial(T.ceildiv(N, 64)):
                T.copy(Z[k * 64, 0], A_shared)
                for i, j in T.Parallel(64, 64):
                    C_local[i, j] = T.if_then_else(j + k < limit, 0, -T.infinity("float32"))
                T.gemm(A_shared, A_shared, C_local, transpose_B=True, clear_accum=k == first)
            T.copy(C_local, Out)

    return main
