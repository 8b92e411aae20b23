"""Matrix times vector, C = B @ A, for a matrix that is read once: memory's speed is the limit.

N and K may be left open: any sizes work.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemv(
    N,
    K,
    block_N=8,  # rows of B a block
    block_K=1024,  # columns a turn
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """C[n] = sum over k of B[n, k] * A[k]."""
    accum_dtype = "float32"

    @T.prim_func
    def gemv_kernel(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        # grid dims: (#blocks of rows)
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bn:
            a = T.alloc_fragment((block_K,), dtype)
            b = T.alloc_shared((block_N, block_K), dtype)
            partial = T.alloc_fragment((block_N, block_K), accum_dtype)
            total = T.alloc_fragment((block_N,), accum_dtype)

            T.clear(partial)
            # Tiles on their way in shared memory keep more of memory busy than registers could.
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[k * block_K], a)
                T.copy(B[bn * block_N, k * block_K], b)
                # Each thread sums the columns that it holds; they meet once, at the end.
                for i, j in T.Parallel(block_N, block_K):
                    partial[i, j] += T.cast(b[i, j], accum_dtype) * T.cast(a[j], accum_dtype)
            T.reduce_sum(partial, total, dim=1)
            T.copy(total, C[bn * block_N])

    return gemv_kernel


if __name__ == "__main__":
    kernel = gemv(N=16384, K=16384)
