"""`first` is what the table had before it was written: an index of the loop is not the table's element of now."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N):
    @T.prim_func
    def body(Tab: T.Tensor((8,), "int32"), A: T.Tensor((N,), "float32"), C: T.Tensor((N + 512,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            F = T.alloc_fragment((N,), "float32")
            T.copy(A, F)
            first = Tab[0]
            Tab[0] = first + 128
            for i, j in T.Parallel(N // 8, 8):
                C[first + 4 + i * 8 + j] = F[i * 8 + j]

    return body
