import tilelang
import tilelang.language as T


@tilelang.jit
def ping_pong_by_iteration(N, threads=256):
    @T.prim_func
    def main(
        Q: T.Tensor((64, 128), "float16"),
        KV: T.Tensor((2 * N, 128), "float16"),
        first: T.int32,
        Out: T.Tensor((64, 128), "float32"),
        Total: T.Tensor((64,), "float32"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            Q_shared = T.alloc_shared((64, 128), "float16")
            KV_shared = T.alloc_shared((64, 128), "float16")
            S_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            O = T.alloc_fragment((64, 128), "float32")
            most = T.alloc_fragment((64,), "float32")
            shift = T.alloc_fragment((64,), "float32")
            part = T.alloc_fragment((64,), "float32")
            total = T.alloc_fragment((64,), "float32")
            T.copy(Q, Q_shared)
            T.clear(O)
            T.clear(total)
            for k in T.Pipelined(first, N // 64 + first, num_stages=2):
                T.copy(KV[k * 64, 0], KV_shared)
                T.gemm(Q_shared, KV_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
                T.reduce_max(S, most, dim=1)
                for i in T.Parallel(64):
                    shift[i] = most[i] * 0.5 + k
                T.reduce_sum(S, part, dim=1)
                for i in T.Parallel(64):
                    total[i] = total[i] * k + part[i]
                for i, j in T.Parallel(64, 128):
                    O[i, j] = O[i, j] * 0.5 + shift[i] + k
                T.copy(S, S_shared)
                T.gemm(S_shared, KV_shared, O, clear_accum=k == 4, policy=T.GemmWarpPolicy.FullCol)
            T.copy(O, Out)
            T.copy(total, Total)

    return main
