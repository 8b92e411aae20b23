"""Fragments with the names that alternating warpgroups give their own copies of an operand."""

import tilelang.language as T


def fragments_named_like_a_schedules(N):
    @T.prim_func
    def kernel(Z: T.Tensor((N, 128), "float16"), Q: T.Tensor((64, 128), "float16"), Y: T.Tensor((64, 128), "float32")):
        with T.Kernel(1, threads=256) as bx:
            Q_shared = T.alloc_shared((64, 128), "float16")
            K_shared = T.alloc_shared((64, 128), "float16")
            S_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            S_own = T.alloc_fragment((64,), "float32")
            S_now = T.alloc_fragment((64,), "float32")
            O = T.alloc_fragment((64, 128), "float32")
            T.copy(Q, Q_shared)
            T.clear(O)
            T.fill(S_now, 1)
            for k in T.Pipelined(T.ceildiv(N, 64), num_stages=2):
                T.copy(Z[k * 64, 0], K_shared)
                T.gemm(
                    Q_shared, K_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol
                )
                T.reduce_max(S, S_own, dim=1)
                for i in T.Parallel(64):
                    S_now[i] = T.max(S_now[i], S_own[i])
                for i, j in T.Parallel(64, 64):
                    S[i, j] = T.min(T.max(S[i, j] - S_now[i], -2.0), 2.0)
                T.copy(S, S_shared)
                T.gemm(S_shared, K_shared, O, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(64, 128):
                O[i, j] = O[i, j] + S_now[i]
            T.copy(O, Y)

    return kernel
