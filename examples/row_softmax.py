"""Softmax over the rows of a matrix that is narrow enough for a row to be kept in registers."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def row_softmax(M, N, block_M=4, threads=128, dtype="float32"):
    """Y[i, :] = exp(X[i, :] - max(X[i, :])) / sum(exp(X[i, :] - max(X[i, :])))."""

    @T.prim_func
    def row_softmax_kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        # One block takes block_M whole rows: X is read once, Y is written once.
        with T.Kernel(T.ceildiv(M, block_M), threads=threads) as bx:
            X_local = T.alloc_fragment((block_M, N), "float32")
            row_max = T.alloc_fragment((block_M,), "float32")
            row_sum = T.alloc_fragment((block_M,), "float32")

            T.copy(X[bx * block_M, 0], X_local)

            # Subtracting the row's maximum keeps exp from overflowing; it cancels in the quotient.
            T.reduce_max(X_local, row_max, dim=1)
            for i, j in T.Parallel(block_M, N):
                X_local[i, j] = T.exp(X_local[i, j] - row_max[i])
            T.reduce_sum(X_local, row_sum, dim=1)
            for i, j in T.Parallel(block_M, N):
                X_local[i, j] = X_local[i, j] / row_sum[i]

            T.copy(X_local, Y[bx * block_M, 0])

    return row_softmax_kernel


if __name__ == "__main__":
    kernel = row_softmax(4096, 1000)
