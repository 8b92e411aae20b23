"""Masks whose condition multiplies an index by a fraction: no integer, whose last element is masked first."""

import tilelang.language as T


def mask_by_a_fraction(N):
    @T.prim_func
    def kernel(Z: T.Tensor((64, 64), "float16"), Out: T.Tensor((64, 64), "float32"), limit: T.int32):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            C = T.alloc_fragment((64, 64), "float32")
            T.copy(Z, A_shared)
            for i, j in T.Parallel(64, 64):
                C[i, j] = T.if_then_else(T.cast(j, "float32") * 0.3 < limit * 0.3, 0, -T.infinity("float32"))
            T.gemm(A_shared, A_shared, C, transpose_B=True)
            T.copy(C, Out)

    return kernel
