import tilelang
import tilelang.language as T


@tilelang.jit
def ping_pong_over_a_table(N, threads=256):
    @T.prim_func
    def main(
        Q: T.Tensor((64, 128), "float16"),
        KV: T.Tensor((2 * N, 128), "float16"),
        Table: T.Tensor((64,), "float32"),
        row: T.int32,
        Out: T.Tensor((64, 128), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            Q_shared = T.alloc_shared((64, 128), "float16")
            KV_shared = T.alloc_shared((64, 128), "float16")
            S_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            S_local = T.alloc_fragment((64, 64), "float16")
            O = T.alloc_fragment((64, 128), "float32")
            most = T.alloc_fragment((64,), "float32")
            T.copy(Q, Q_shared)
            T.clear(O)
            for k in T.Pipelined(N // 64, num_stages=2):
                T.copy(KV[k * 64, 0], KV_shared)
                T.clear(S)
                T.gemm(Q_shared, KV_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                if k == 1:
                    for i, j in T.Parallel(64, 64):
                        S[i, j] = T.if_then_else(k * 64 + j >= row, Table[j], S[i, j])
                T.reduce_max(S, most, dim=1)
                T.copy(S, S_shared)
                T.copy(S_shared, S_local)
                for i, j in T.Parallel(64, 128):
                    O[i, j] = O[i, j] * 0.5 + most[i]
                T.gemm(S_local, KV_shared, O, policy=T.GemmWarpPolicy.FullCol)
            T.copy(O, Out)

    return main
