"""A block reads each trip count, some of them 0, before it writes the tensor: behind a loop that did not run, too."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, dtype="float16"):
    @T.prim_func
    def body(
        Tab: T.Tensor((8,), "int32"), A: T.Tensor((128, N), dtype), B: T.Tensor((N, 128), dtype),
        C: T.Tensor((128, 128), "float32"), Y: T.Tensor((128,), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((128, 64), dtype)
            B_shared = T.alloc_shared((64, 128), dtype)
            C_local = T.alloc_fragment((128, 128), "float32")
            row = T.alloc_shared((128,), "float32")
            T.clear(C_local)
            T.clear(row)
            for q in T.serial(5):
                for k in T.Pipelined(Tab[q], num_stages=2):
                    T.copy(A[0, k * 64], A_shared)
                    T.copy(B[k * 64, 0], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                for k in T.serial(Tab[q + 1]):
                    for i in T.Parallel(128):
                        row[i] = C_local[i, 0] + k
                    for i in T.Parallel(128):
                        Y[i] = row[127 - i]
            for i in T.Parallel(8):
                Tab[i] = 3
            T.copy(C_local, C)
    return body
