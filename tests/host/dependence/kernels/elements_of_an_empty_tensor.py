"""A tensor without elements is read in a loop without iterations; its result is what the loop began with."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N, K=0):
    @T.prim_func
    def body(X: T.Tensor((64, K), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as bx:
            F = T.alloc_fragment((64,), "float32")
            T.fill(F, 3.0)
            for k in T.serial(K):
                if X[0, 0] > 0:
                    for i in T.Parallel(64):
                        F[i] += X[i, k]
            T.copy(F, Y)

    return body
