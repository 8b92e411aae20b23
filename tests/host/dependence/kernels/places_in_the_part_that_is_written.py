"""Operations on parts of tiles whose places or values are elements of the part: all threads read them first."""

import tilelang.language as T


def places_in_the_part_that_is_written(N):
    @T.prim_func
    def kernel(X: T.Tensor((4, 128), "int32"), Z: T.Tensor((64,), "int32"), V: T.Tensor((4, 128), "int32")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((2, 128), "int32")
            T.copy(X[1, 0], S[1, :])
            T.copy(X[S[1, 3] % 3 + 1, 0], S[1, :])
            T.copy(S[1, :], V[0, :])
            T.fill(S[1, :], S[1, 5] + 1)
            T.copy(S[1, :], V[1, :])
            T.copy(X[S[1, 7] % 3 + 1, 0], S[0, :])
            T.copy(S[0, :], V[2, :])
            T.fill(V[3, :], V[3, 4] + 7)
            T.atomic_add(Z[T.max(Z[3], 1) % 3], Z[40:56])

    return kernel
