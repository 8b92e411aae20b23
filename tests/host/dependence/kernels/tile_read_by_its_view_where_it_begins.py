"""Shared memory is full: a tile whose iterations begin by reading its old value, under another name, keeps it."""

import tilelang.language as T


def tile_read_by_its_view_where_it_begins(N):
    @T.prim_func
    def kernel(X: T.Tensor((3, 128, 128), "float32"), Out: T.Tensor((3, 128, 128), "float32")):
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((128, 128), "float32")
            V = T.view(S, (128, 128), "float32")
            R = T.alloc_shared((128, 128), "float32")
            Q = T.alloc_shared((128, 128), "float32")
            P = T.alloc_shared((128, 128), "float32")
            for k in T.serial(3):
                for i, j in T.Parallel(128, 128):
                    S[i, j] = T.if_then_else(k * 201 > j, V[i, j], 0) + k + 1
                for i, j in T.Parallel(128, 128):
                    Out[k, i, j] = S[i, 127 - j]
                T.copy(X[k, 0, 0], R)
                for i, j in T.Parallel(128, 128):
                    Out[k, i, j] += R[j, i]
                T.copy(X[2 - k, 0, 0], Q)
                for i, j in T.Parallel(128, 128):
                    Out[k, i, j] += Q[j, i]
                T.copy(X[1, 0, 0], P)
                for i, j in T.Parallel(128, 128):
                    Out[k, i, j] += P[j, i]

    return kernel
