import tilelang
import tilelang.language as T


@tilelang.jit
def tensor_named_like_two_variables(N, threads=128):
    @T.prim_func
    def main(ij: T.Tensor((64,), "float32"), Out: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            F = T.alloc_fragment((64,), "float32")
            T.copy(ij, F)
            for i, j in T.Parallel(8, 8):
                F[i * 8 + j] = F[i * 8 + j] * 2 + ij[j * 8 + i]
            T.copy(F, Out)

    return main
