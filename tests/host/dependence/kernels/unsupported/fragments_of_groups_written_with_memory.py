# T2C-P004
import tilelang
import tilelang.language as T


@tilelang.jit
def fragments_of_groups_written_with_memory(N, threads=384):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32"), Out2: T.Tensor((64, 64), "float32"), Out3: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            F = T.alloc_fragment((64, 64), "float32")
            S = T.alloc_shared((64, 64), "float32")
            T.copy(A, S)
            for i, j in T.Parallel(64, 64):
                F[i, j] = S[i, j] * 2
                S[i, j] = 1
            with T.ws(0):
                for i, j in T.Parallel(64, 64):
                    Out[i, j] = F[i, j] * 2
            with T.ws(1, 2):
                for i, j in T.Parallel(64, 64):
                    Out2[i, j] = F[i, j] * 3
            T.copy(S, Out3)

    return main
