"""`first` is computed from a variable that is assigned afterwards: an index of the loop is not computed anew."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N):
    @T.prim_func
    def body(A: T.Tensor((N,), "float32"), C: T.Tensor((N + 512,), "float32"), row: T.int32):
        with T.Kernel(1, threads=128) as bx:
            F = T.alloc_fragment((N,), "float32")
            T.copy(A, F)
            v = T.alloc_var("int32")
            v = row
            first = v + 1
            v = v + 100
            for i, j in T.Parallel(N // 8, 8):
                C[first + i * 8 + j] = F[i * 8 + j]
            C[0] = T.cast(v, "float32")

    return body
