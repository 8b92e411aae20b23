"""Three MMAs in two groups: the first two read K and V, the third reads K again, one iteration later."""

import tilelang.language as T


def groups_of_overlapping_mmas(N):
    @T.prim_func
    def kernel(
        Q: T.Tensor((64, 128), "float16"),
        G: T.Tensor((64, 128), "float16"),
        K: T.Tensor((N, 128), "float16"),
        V: T.Tensor((N, 128), "float16"),
        W: T.Tensor((64,), "float32"),
        Y: T.Tensor((64, 128), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            Q_shared = T.alloc_shared((64, 128), "float16")
            G_shared = T.alloc_shared((64, 128), "float16")
            K_shared = T.alloc_shared((64, 128), "float16")
            V_shared = T.alloc_shared((64, 128), "float16")
            weights = T.alloc_shared((64,), "float32")
            S = T.alloc_fragment((64, 64), "float32")
            dP = T.alloc_fragment((64, 64), "float32")
            dS = T.alloc_fragment((64, 64), "float16")
            dQ = T.alloc_fragment((64, 128), "float32")
            T.copy(Q, Q_shared)
            T.copy(G, G_shared)
            T.copy(W, weights)
            T.clear(dQ)
            for k in T.Pipelined(T.ceildiv(N, 64), num_stages=3):
                T.copy(K[k * 64, 0], K_shared)
                T.copy(V[k * 64, 0], V_shared)
                T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(64, 64):
                    S[i, j] = T.min(S[i, j] * weights[i], 2.0)
                if k > 1:
                    for i, j in T.Parallel(64, 64):
                        S[i, j] = T.if_then_else(i > j, S[i, j], 0.0)
                T.gemm(G_shared, V_shared, dP, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(64, 64):
                    dS[i, j] = T.min(T.max(S[i, j] * (dP[i, j] - weights[j]), -3.0), 3.0)
                T.gemm(dS, K_shared, dQ)
            T.copy(dQ, Y)

    return kernel
