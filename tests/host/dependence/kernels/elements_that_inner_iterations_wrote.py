import tilelang
import tilelang.language as T


@tilelang.jit
def elements_that_inner_iterations_wrote(N, threads=128):
    @T.prim_func
    def main(
        X: T.Tensor((8, 64), "float32"),
        Chained: T.Tensor((8, 64), "float32"),
        Summed: T.Tensor((8, 64), "float32"),
        Pairs: T.Tensor((8, 64), "float32"),
        Swapped: T.Tensor((8, 64), "float32"),
        Row: T.Tensor((2, 64), "float32"),
        Quads: T.Tensor((8, 64), "float32"),
        first: T.int32,
    ):
        with T.Kernel(1, threads=threads) as bx:
            F = T.alloc_fragment((8, 64), "float32")
            T.copy(X, F)
            for j in T.Parallel(64):
                for r in T.serial(7):
                    F[r + 1, j] = F[r, j] * 2 + 1
            T.copy(F, Chained)
            T.copy(X, F)
            for j in T.Parallel(64):
                for r in T.serial(7):
                    F[r + 1, j] = F[r, j] + F[r + 1, j]
            T.copy(F, Summed)
            T.copy(X, F)
            for j in T.Parallel(64):
                for r in T.serial(4):
                    F[2 * r, j] = F[2 * r + 1, j] * 2 + 1
                    F[2 * r + 1, j] = F[2 * r, j] + 3
            T.copy(F, Pairs)
            T.copy(X, F)
            for i, j in T.Parallel(4, 64):
                F[i, j] = F[7 - i, j]
                F[7 - i, j] = F[i, j] * 2
            T.copy(F, Swapped)
            T.copy(X, F)
            for j in T.Parallel(64):
                if j % 2 == 0:
                    F[first, j] = F[first + 1, j] * 2
                Row[0, j] = F[first, j]
            for j in T.Parallel(64):
                Row[1, j] = F[first, j]
            for i, j in T.Parallel(8, 16):
                for v in T.serial(1, 4):
                    F[i, j * 4 + v] = F[i, j * 4 + v] * 2 + v
            T.copy(F, Quads)

    return main
