"""Pipelined loops that skip iterations, run again by a loop with statements of its own: an iteration is each time one
of several that the pipelines count.
"""

import tilelang.language as T


def skipped_iterations_in_a_loop(N):
    @T.prim_func
    def kernel(A: T.Tensor((256, 128), "float16"), Out: T.Tensor((2, 64, 32), "float32")):
        with T.Kernel(1, threads=128) as bx:
            Q = T.alloc_shared((64, 32), "float16")
            K = T.alloc_shared((64, 32), "float16")
            V = T.alloc_shared((64, 32), "float16")
            S = T.alloc_fragment((64, 64), "float32")
            P = T.alloc_fragment((64, 64), "float16")
            O = T.alloc_fragment((64, 32), "float32")
            T.copy(A[0, 0], Q)
            T.clear(O)
            for t in T.serial(2):
                for k in T.Pipelined(5, num_stages=2):
                    if k != 2:
                        T.copy(A[k * 40, 0], K)
                        T.copy(A[k * 40, 64], V)
                        T.gemm(Q, K, S, transpose_B=True, clear_accum=True)
                        for i, j in T.Parallel(64, 64):
                            if i < k * 16:
                                S[i, j] = T.min(S[i, j], 2)
                        T.copy(S, P)
                        T.gemm(P, V, O)
                for i, j in T.Parallel(64, 32):
                    Out[t, i, j] = O[i, j]

    return kernel
