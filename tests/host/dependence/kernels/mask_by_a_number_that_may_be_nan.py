import tilelang
import tilelang.language as T


@tilelang.jit
def mask_by_a_number_that_may_be_nan(N, threads=128):
    @T.prim_func
    def main(Z: T.Tensor((256, 64), "float16"), W: T.Tensor((8,), "float32"), Out: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            D = T.alloc_fragment((64, 64), "float32")
            T.clear(D)
            for k in T.serial(8):
                T.copy(Z[k * 16, 0], A_s)
                w = W[k] / W[k]
                for i, j in T.Parallel(64, 64):
                    C[i, j] = T.if_then_else(j < w * 100, 0, -T.infinity("float32"))
                T.gemm(A_s, A_s, C, transpose_B=True)
                for i, j in T.Parallel(64, 64):
                    D[i, j] += T.max(C[i, j], -50)
            for k in T.serial(8):
                T.copy(Z[k * 16, 0], A_s)
                w = W[k] / W[k]
                for i, j in T.Parallel(64, 64):
                    C[i, j] = T.if_then_else(w < 100, 0, -T.infinity("float32"))
                T.gemm(A_s, A_s, C, transpose_B=True)
                for i, j in T.Parallel(64, 64):
                    D[i, j] += T.max(C[i, j], -50)
            T.copy(D, Out)

    return main
