"""Threads of some warps, of a part of a warp, and those that an element chooses read from a tensor what others wrote."""

import tilelang
import tilelang.language as T


@tilelang.jit
def kernel(N):
    @T.prim_func
    def body(X: T.Tensor((128,), "float32"), Y: T.Tensor((3, 128), "float32"), Z: T.Tensor((3, 128), "float32")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding()
            if tx < 64:
                Y[0, tx] = X[tx] + 1.0
                Z[0, tx] = Y[0, 63 - tx]
            if tx < 40:
                Y[1, tx] = X[tx] + 2.0
                Z[1, tx] = Y[1, 39 - tx]
            if X[tx] > 0:
                Y[2, tx] = X[tx] + 3.0
                Z[2, tx] = Y[2, (tx + 7) % 128]

    return body
