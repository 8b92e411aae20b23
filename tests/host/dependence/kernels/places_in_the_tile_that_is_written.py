"""Operations whose places, numbers or extents are elements of the memory that they write: all threads read them first."""

import tilelang.language as T


def places_in_the_tile_that_is_written(N):
    @T.prim_func
    def kernel(X: T.Tensor((64, 64), "int32"), Y: T.Tensor((3, 32, 32), "int32"), V: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((32, 32), "int32")
            counts = T.alloc_shared((128,), "int32")
            T.copy(X[3, 3], S)
            T.copy(X[S[5, 6] % 4 + 1, 0], S)
            T.copy(S, Y[0, 0, 0])
            T.fill(S, S[3, 4] + 1)
            T.copy(S, Y[1, 0, 0])
            T.copy(X[20, 9], S)
            T.copy(S, Y[Y[0, 0, 0] % 2 + 1, 0, 0])
            T.fill(counts, 100)
            for i in T.Parallel(counts[7]):
                counts[i] = i
            T.copy(counts, V)

    return kernel
