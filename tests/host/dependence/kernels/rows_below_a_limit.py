import tilelang
import tilelang.language as T


@tilelang.jit
def rows_below_a_limit(N, threads=128):
    @T.prim_func
    def main(
        A: T.Tensor((N, 64), "float16"), unlimited: T.int32, below: T.int32, row: T.int32,
        Out: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for k in T.Pipelined(2, num_stages=2):
                for i, j in T.Parallel(64, 64):
                    A_shared[i, j] = T.if_then_else(i < unlimited, A[row + i, j], 0)
                for i, j in T.Parallel(64, 64):
                    B_shared[i, j] = T.if_then_else(i < below, A[row + i, j], 0)
                T.gemm(A_shared, A_shared, C_local, transpose_B=True)
                T.gemm(B_shared, A_shared, C_local, transpose_B=True)
            T.copy(C_local, Out)

    return main
