import tilelang
import tilelang.language as T


@tilelang.jit
def fragment_with_two_views(N, threads=128):
    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), Out: T.Tensor((32, 32), "float32"), Out2: T.Tensor((8, 128), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            F = T.alloc_fragment((16, 64), "float32")
            V = T.reshape(F, (32, 32))
            W = T.reshape(F, (8, 128))
            T.copy(A, F)
            T.copy(V, Out)
            for i, j in T.Parallel(8, 128):
                W[i, j] = W[i, j] * 2 + 1
            for i, j in T.Parallel(32, 32):
                Out[i, j] = Out[i, j] + V[i, j]
            T.copy(W, Out2)

    return main
