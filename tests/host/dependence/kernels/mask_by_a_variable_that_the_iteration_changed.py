"""A mask on a variable that an earlier statement of the iteration changes, in a loop of overlapping MMAs."""

import tilelang.language as T


def mask_by_a_variable_that_the_iteration_changed(N):
    @T.prim_func
    def kernel(
        Q: T.Tensor((64, 64), "float16"),
        K: T.Tensor((N, 64), "float16"),
        V: T.Tensor((N, 64), "float16"),
        Y: T.Tensor((64, 64), "float32"),
        length: T.int32,
    ):
        with T.Kernel(1, threads=128) as bx:
            Q_shared = T.alloc_shared((64, 64), "float16")
            K_shared = T.alloc_shared((64, 64), "float16")
            V_shared = T.alloc_shared((64, 64), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            P = T.alloc_fragment((64, 64), "float16")
            O = T.alloc_fragment((64, 64), "float32")
            end = T.alloc_var("int32", init=0)
            T.copy(Q, Q_shared)
            T.clear(O)
            for k in T.Pipelined(T.ceildiv(N, 64), num_stages=2):
                end = end + 64
                T.copy(K[k * 64, 0], K_shared)
                T.copy(V[k * 64, 0], V_shared)
                T.gemm(Q_shared, K_shared, S, transpose_B=True, clear_accum=True)
                if end > length:
                    for i, j in T.Parallel(64, 64):
                        S[i, j] = T.if_then_else(end - 64 + j < length, S[i, j], -1.0)
                for i, j in T.Parallel(64, 64):
                    P[i, j] = T.max(T.min(S[i, j], 2.0), -2.0)
                T.gemm(P, V_shared, O)
            T.copy(O, Y)

    return kernel
