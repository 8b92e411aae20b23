"""Vector addition: the smallest kernel with full-width memory access."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def vector_add(N, block_N=1024, threads=256, dtype="float32"):
    """C = A + B."""

    @T.prim_func
    def vector_add_kernel(A: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), C: T.Tensor((N,), dtype)):
        # One block adds block_N elements; the last block may have fewer.
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bx:
            for i in T.Parallel(block_N):
                C[bx * block_N + i] = A[bx * block_N + i] + B[bx * block_N + i]

    return vector_add_kernel


if __name__ == "__main__":
    kernel = vector_add(1 << 20)
