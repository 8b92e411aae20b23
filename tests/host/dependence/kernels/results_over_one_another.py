"""Results of which each one overwrites a part of another one: nothing orders what TMA stores with other stores."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, threads=128):
    @T.prim_func
    def main(
        K: T.Tensor((N, 64), "float16"), Out: T.Tensor((128, 64), "float16"), Twice: T.Tensor((64, 64), "float16"),
    ):
        with T.Kernel(1, threads=threads) as bx:
            A = T.alloc_shared((64, 64), "float16")
            B = T.alloc_shared((32, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            D = T.alloc_fragment((32, 64), "float32")
            T.clear(C)
            T.clear(D)
            for k in T.Pipelined(N // 64, num_stages=2):
                T.copy(K[k * 64, 0], A)
                T.copy(K[k * 64, 0], B)
                T.gemm(A, A, C)
                T.gemm(B, A, D)
            T.copy(C, Out[0, 0])
            T.copy(D, Out[16, 0])
            T.copy(C, Out[64, 0])
            for r in T.serial(3):
                for i, j in T.Parallel(64, 64):
                    C[i, j] = C[i, j] * 0.5
                T.copy(C, Twice)

    return main
