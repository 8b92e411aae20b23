import tilelang
import tilelang.language as T


@tilelang.jit
def rows_below_a_float(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((256, 64), "float16"), L: T.Tensor((4,), "float32"), Out: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.clear(C)
            for k in T.Pipelined(4, num_stages=2):
                for i, j in T.Parallel(64, 64):
                    A_s[i, j] = T.if_then_else(i < L[k] + 2.5, A[k * 64 + i, j], 0)
                T.gemm(A_s, A_s, C, transpose_B=True)
            T.copy(C, Out)

    return main
