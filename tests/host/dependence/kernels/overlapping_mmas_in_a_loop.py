"""A loop of overlapping MMAs that runs once per tile of the block; the trip count differs from tile to tile."""

import tilelang.language as T


def overlapping_mmas_in_a_loop(N):
    @T.prim_func
    def kernel(
        Q: T.Tensor((192, 64), "float16"),
        K: T.Tensor((N, 64), "float16"),
        V: T.Tensor((N, 64), "float16"),
        Y: T.Tensor((192, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            Q_shared = T.alloc_shared((64, 64), "float16")
            K_shared = T.alloc_shared((64, 64), "float16")
            V_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            P = T.alloc_fragment((64, 64), "float16")
            O = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_fragment((64,), "float32")
            part = T.alloc_fragment((64,), "float32")
            for tile in T.serial(3):
                T.copy(Q[tile * 64, 0], Q_shared)
                T.clear(O)
                T.fill(total, 0)
                for k in T.Pipelined(T.min(2 * tile - 1, T.ceildiv(N, 64)), num_stages=2):
                    T.copy(K[k * 64, 0], K_shared)
                    T.copy(V[k * 64, 0], V_shared)
                    T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
                    if k == 2 * tile - 2:
                        for i, j in T.Parallel(64, 64):
                            S[i, j] = T.if_then_else(i >= j, S[i, j], 0.0)
                    T.reduce_sum(S, part, dim=1)
                    for i in T.Parallel(64):
                        total[i] = total[i] * 0.5 + part[i]
                    for i, j in T.Parallel(64, 64):
                        O[i, j] *= 0.5
                    for i, j in T.Parallel(64, 64):
                        P[i, j] = T.max(T.min(S[i, j], 3.0), -3.0)
                    T.gemm(P, V_shared, O)
                for i, j in T.Parallel(64, 64):
                    O[i, j] += total[i]
                T.copy(O, Y[tile * 64, 0])

    return kernel
