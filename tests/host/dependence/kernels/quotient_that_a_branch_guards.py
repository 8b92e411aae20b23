"""A quotient whose divisor may be zero, named in a divergent branch that a barrier splits."""

import tilelang.language as T


def quotient_that_a_branch_guards(N):
    @T.prim_func
    def kernel(X: T.Tensor((128,), "float32"), Y: T.Tensor((3, 128), "float32"), limit: T.int32):
        with T.Kernel(3, threads=128) as bx:
            S = T.alloc_shared((128,), "float32")
            tx = T.get_thread_binding()
            count = limit * bx
            Y[bx, tx] = -1
            if tx < count:
                place = (tx + 64) // count
                S[tx] = X[tx] * 2
                if place < count:
                    Y[bx, tx] = S[place]

    return kernel
