"""Operations on private arrays whose places or values are elements of the array: a thread reads them first."""

import tilelang.language as T


def places_in_the_private_array_that_is_written(N):
    @T.prim_func
    def kernel(X: T.Tensor((8, 4), "int32"), V: T.Tensor((128, 12), "int32")):
        with T.Kernel(1, threads=128) as bx:
            tx = T.get_thread_binding(0)
            L = T.alloc_local((4,), "int32")
            M = T.alloc_local((2, 4), "int32")
            T.fill(L, 3)
            L[0] = tx % 4
            T.copy(X[L[0] + 2, 0], L)
            T.copy(L, V[tx, 0:4])
            T.fill(L, L[2] - L[0] + 1)
            T.copy(L, V[tx, 4:8])
            T.fill(M, tx)
            T.fill(M[1, :], M[1, 0] + M[1, 2])
            for i in T.serial(4):
                V[tx, 8 + i] = M[1, i]

    return kernel
