"""A producer reads a trip count, 0 or more, at another time than consumers, which then write the tensor."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, dtype="float16"):
    @T.prim_func
    def body(
        Tab: T.Tensor((8,), "int32"), A: T.Tensor((2, 128, N), dtype), B: T.Tensor((N, 128), dtype),
        C: T.Tensor((2, 128, 128), "float32"),
    ):
        with T.Kernel(2, threads=128) as bx:
            A_shared = T.alloc_shared((128, 64), dtype)
            B_shared = T.alloc_shared((64, 128), dtype)
            C_local = T.alloc_fragment((128, 128), "float32")
            T.clear(C_local)
            for k in T.Pipelined(Tab[2 * bx], num_stages=2):
                T.copy(A[bx, 0:128, k * 64 : k * 64 + 64], A_shared)
                T.copy(B[k * 64, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i in T.Parallel(2):
                Tab[2 * bx + i] = 4
            T.copy(C_local, C[bx, 0:128, 0:128])
    return body
