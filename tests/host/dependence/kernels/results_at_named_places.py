"""Results that a loop stores at places with names: each iteration has another number for the name, and stores over what
the iteration before stored.
"""

import tilelang.language as T


def results_at_named_places(N):
    @T.prim_func
    def kernel(A: T.Tensor((256, 256), "float16"), Out: T.Tensor((512, 64), "float16")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            D = T.alloc_fragment((64, 64), "float32")
            for t in T.serial(4):
                r = t * -192
                T.clear(C)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[t * 64, k * 64], A_s)
                    T.copy(A[k * 64, 0], B_s)
                    T.gemm(A_s, B_s, C)
                for i, j in T.Parallel(64, 64):
                    D[i, j] = C[i, j] + t
                T.copy(C, Out[r + t * 256, 0])
                T.copy(D, Out[r + t * 256 + 64, 0])

    return kernel
