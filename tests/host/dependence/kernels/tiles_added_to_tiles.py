"""Atomic updates of a shared tile by another one or a tensor, and of a tensor by another one: by elements."""

import tilelang.language as T


def tiles_added_to_tiles(N):
    @T.prim_func
    def kernel(X: T.Tensor((32, 32), "float32"), Y: T.Tensor((32, 32), "float32"), Z: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((32, 32), "float32")
            U = T.alloc_shared((32, 32), "float32")
            F = T.alloc_fragment((8, 32), "float32")
            T.copy(X, S)
            T.copy(X, U)
            T.copy(X[8:16, 0:32], F)
            T.atomic_add(S, U)
            T.atomic_max(S[0:8, 8:24], U[16:24, 0:16])
            T.atomic_add(S, X)
            T.atomic_add(S[8:16, 0:32], F)
            T.copy(S, Y)
            T.atomic_add(Z, X)
            T.atomic_add(Z, U)

    return kernel
