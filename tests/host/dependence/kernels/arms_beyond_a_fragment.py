import tilelang
import tilelang.language as T


@tilelang.jit
def arms_beyond_a_fragment(N, threads=128):
    @T.prim_func
    def main(
        X: T.Tensor((8, 64), "float32"),
        Out: T.Tensor((8, 32), "float32"),
        Below: T.Tensor((8, 32), "float32"),
        Far: T.Tensor((8, 32), "float32"),
        limit: T.int32,
        below: T.int32,
    ):
        with T.Kernel(1, threads=threads) as bx:
            F = T.alloc_fragment((8, 64), "float32")
            T.copy(X, F)
            for i, j in T.Parallel(8, 32):
                Out[i, j] = T.if_then_else(j + limit < 64, F[i, j + limit], 5.0)
            for i, j in T.Parallel(8, 32):
                Below[i, j] = T.if_then_else(j + below >= 0 and j + below < 64, F[i, j + below], 5.0)
            for i, j in T.Parallel(8, 32):
                Far[i, j] = T.cast(j + 48 < 64 and F[i, j + 48] > 0, "float32")

    return main
