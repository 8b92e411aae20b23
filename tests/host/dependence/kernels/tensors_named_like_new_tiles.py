"""Tensors with the names that passes would give to the tiles that they add."""

import tilelang.language as T


def tensors_named_like_new_tiles(N):
    @T.prim_func
    def kernel(
        X: T.Tensor((64, 64), "float32"),
        F_staged: T.Tensor((64, 64), "float32"),
        total_parts: T.Tensor((64,), "float32"),
    ):
        with T.Kernel(1, threads=128) as bx:
            F = T.alloc_fragment((64, 64), "float32")
            G = T.alloc_fragment((64, 64), "float32")
            total = T.alloc_fragment((64,), "float32")
            T.copy(X, F)
            T.copy(F, F_staged)
            for i, j in T.Parallel(64, 64):
                G[i, j] = F[63 - i, j] + F_staged[i, 63 - j]
            T.copy(G, F_staged)
            T.clear(total)
            for t in T.serial(4):
                for i, j in T.Parallel(64, 64):
                    G[i, j] = F_staged[63 - i, j] + t
                T.reduce_sum(G, total, dim=0, clear=False)
            T.copy(total, total_parts)

    return kernel
