"""Sums of the rows of a matrix, tile by tile, in one pass over memory, for any row length."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def reduce_rows(M, N, block_M=4, block_N=1024, threads=128, dtype="float16"):
    """Y[i] = sum of X[i, :]."""
    accum_dtype = "float32"

    @T.prim_func
    def reduce_rows_kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M,), accum_dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            x = T.alloc_fragment((block_M, block_N), dtype)
            partial = T.alloc_fragment((block_M, block_N), accum_dtype)
            total = T.alloc_fragment((block_M,), accum_dtype)

            # Each thread adds its own columns; one reduction over threads at the end.
            T.clear(partial)
            for k in T.serial(T.ceildiv(N, block_N)):
                T.copy(X[bx * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    partial[i, j] += x[i, j]
            T.reduce_sum(partial, total, dim=1)
            T.copy(total, Y[bx * block_M])

    return reduce_rows_kernel
