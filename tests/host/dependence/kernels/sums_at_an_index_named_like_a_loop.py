"""Sums into an element whose index has a name that a pass gives its own loop."""

import tilelang.language as T


def sums_at_an_index_named_like_a_loop(N):
    @T.prim_func
    def kernel(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            sums = T.alloc_fragment((4,), "float32")
            T.clear(sums)
            for i_all in T.serial(4):
                for i in T.Parallel(64):
                    sums[i_all] += X[i_all, i]
            T.copy(sums, Y)

    return kernel
