"""Consumers load a vector in the iterations that a producer's loop does not skip: they prefetch none for the next."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N):
    @T.prim_func
    def body(
        A: T.Tensor((64, N), "float16"),
        B: T.Tensor((N, 16), "float16"),
        rows: T.Tensor((N, 16), "float32"),
        C: T.Tensor((64, 16), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 16), "float16")
            C_local = T.alloc_fragment((64, 16), "float32")
            row = T.alloc_shared((16,), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(N, 32), num_stages=2):
                if (k + bx) % 3 != 1:
                    T.copy(A[0, k * 32], A_shared)
                    T.copy(B[k * 32, 0], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                    T.copy(rows[k, 0:16], row)
                    for i, j in T.Parallel(64, 16):
                        C_local[i, j] += row[j]
            T.copy(C_local, C)

    return body
