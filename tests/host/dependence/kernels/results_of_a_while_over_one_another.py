"""Two results of each iteration of a `while`, of which the next iteration stores over the second in other warps."""

import tilelang.language as T


def results_of_a_while_over_one_another(N):
    @T.prim_func
    def kernel(A: T.Tensor((256, 256), "float16"), Out: T.Tensor((352, 64), "float16")):
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            D = T.alloc_fragment((64, 64), "float32")
            t = T.alloc_var("int32")
            t = 0
            while t < 4:
                r = t * 64
                T.clear(C)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[r, k * 64], A_s)
                    T.copy(A[k * 64, 0], B_s)
                    T.gemm(A_s, B_s, C)
                for i, j in T.Parallel(64, 64):
                    D[i, j] = C[i, j] + t
                T.copy(C, Out[r, 0])
                T.copy(D, Out[r + 96, 0])
                t = t + 1

    return kernel
