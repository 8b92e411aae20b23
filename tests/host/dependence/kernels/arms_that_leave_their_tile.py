import tilelang
import tilelang.language as T


@tilelang.jit
def arms_that_leave_their_tile(N, D=64, threads=128):
    @T.prim_func
    def main(
        X: T.Tensor((N, D), "float32"), limit: T.int32, Y: T.Tensor((N, D), "float32"), W: T.Tensor((N, D), "float16"),
        V: T.Tensor((N, D), "float32"), U: T.Tensor((N, D), "float32"),
    ):
        with T.Kernel(N // 32, threads=threads) as bx:
            x = T.alloc_shared((32, D), "float32")
            l = T.alloc_fragment((32, D), "float32")
            T.copy(X[bx * 32, 0], x)
            for i, j in T.Parallel(32, D):
                Y[bx * 32 + i, j] = T.if_then_else(j < D // 2, -x[i, j + D // 2], x[i, j - D // 2])
            for i, j in T.Parallel(32, D):
                l[i, j] = T.if_then_else(j < D // 2, -x[i, j + D // 2], x[i, j - D // 2])
            for i, j in T.Parallel(32, D):
                W[bx * 32 + i, j] = T.if_then_else(bx * 32 + i > 0, T.cast(X[bx * 32 + i - 1, j], "float16"), 0)
            for i, j in T.Parallel(32, D):
                V[bx * 32 + i, j] = T.if_then_else(
                    i < 16, T.if_then_else(i > 0, x[i - 1, j], 2.0), T.if_then_else(i < 31, x[i + 1, j], l[i, j])
                )
            for i, j in T.Parallel(32, D):
                U[bx * 32 + i, j] = T.if_then_else(i < limit and i + limit < 32, x[i + limit, j], 1.0)

    return main
