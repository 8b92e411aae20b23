# T2C-L014
import tilelang
import tilelang.language as T


@tilelang.jit
def elements_that_other_iterations_wrote(N, threads=128):
    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Out: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            F = T.alloc_fragment((8, 64), "float32")
            T.copy(X, F)
            for i, j in T.Parallel(2, 64):
                for r in T.serial(3):
                    F[i * 4 + r + 1, j] = F[i * 4 + r, j] * 2 + 1
            T.copy(F, Out)

    return main
