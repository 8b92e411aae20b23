import tilelang
import tilelang.language as T


@tilelang.jit
def statements_behind_the_second_mma(N, threads=256):
    @T.prim_func
    def main(
        Q: T.Tensor((128, 64), "float16"),
        K: T.Tensor((N, 64), "float16"),
        V: T.Tensor((N, 64), "float16"),
        length: T.int32,
        Out: T.Tensor((128, 64), "float32"),
        Sums: T.Tensor((128,), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            Q_shared = T.alloc_shared((128, 64), "float16")
            K_shared = T.alloc_shared((64, 64), "float16")
            V_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((128, 64), "float32")
            P = T.alloc_fragment((128, 64), "float16")
            O = T.alloc_fragment((128, 64), "float32")
            rows = T.alloc_fragment((128,), "float32")
            total = T.alloc_fragment((128,), "float32")
            T.copy(Q, Q_shared)
            T.clear(O)
            T.clear(total)
            for k in T.Pipelined(T.ceildiv(N, 64), num_stages=2):
                start = k * 64
                T.copy(K[start, 0], K_shared)
                T.copy(V[start, 0], V_shared)
                T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(128, 64):
                    S[i, j] = T.if_then_else(start + j < length, S[i, j], 0)
                T.copy(S, P)
                for i, j in T.Parallel(128, 64):
                    O[i, j] = O[i, j] * 0.5
                T.gemm(P, V_shared, O, policy=T.GemmWarpPolicy.FullRow)
                T.reduce_sum(S, rows, dim=1)
                for i in T.Parallel(128):
                    total[i] = total[i] * 0.5 + rows[i]
            T.copy(O, Out)
            T.copy(total, Sums)

    return main
