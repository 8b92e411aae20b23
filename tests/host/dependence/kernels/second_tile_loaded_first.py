"""A loop of one stage that loads the tile of its second MMA first: a producer must not wait for it too early."""

import tilelang.language as T


def second_tile_loaded_first(N):
    @T.prim_func
    def kernel(
        Q: T.Tensor((64, 64), "float16"),
        K: T.Tensor((N, 64), "float16"),
        V: T.Tensor((N, 64), "float16"),
        Y: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            Q_shared = T.alloc_shared((64, 64), "float16")
            K_shared = T.alloc_shared((64, 64), "float16")
            V_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            P = T.alloc_fragment((64, 64), "float16")
            O = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, Q_shared)
            T.clear(O)
            for k in T.Pipelined(T.ceildiv(N, 64), num_stages=1):
                T.copy(V[k * 64, 0], V_shared)
                T.copy(K[k * 64, 0], K_shared)
                T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(64, 64):
                    P[i, j] = T.max(T.min(S[i, j], 3.0), -3.0)
                T.gemm(P, V_shared, O)
            T.copy(O, Y)

    return kernel
