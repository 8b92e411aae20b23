import tilelang
import tilelang.language as T


@tilelang.jit
def fragments_of_groups_beside_memory(N, threads=384):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), Out: T.Tensor((64, 64), "float32"), Out2: T.Tensor((64, 64), "float32"), Out3: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=threads) as bx:
            F = T.alloc_fragment((64, 64), "float32")
            G = T.alloc_fragment((64,), "float32")
            S = T.alloc_shared((64, 64), "float32")
            T.copy(A, S)
            T.copy(S, F)
            T.reduce_sum(F, G, dim=1)
            with T.ws(0):
                for i, j in T.Parallel(64, 64):
                    Out[i, j] = F[i, j] * 2 + G[i]
            with T.ws(1, 2):
                for i, j in T.Parallel(64, 64):
                    Out2[i, j] = F[i, j] * 3 - G[i]
            for i in T.Parallel(64):
                T.atomic_add(Out3[i], G[i])

    return main
