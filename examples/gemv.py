"""Matrix times vector, C = B @ A, bound by DRAM bandwidth: the matrix is read once.

N and K may be left open: any sizes work.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemv(
    N,
    K,
    block_N=4,  # rows of B per block
    block_K=None,
    num_stages=None,
    threads=128,
    dtype="float16",
):
    """C[n] = sum over k of B[n, k] * A[k]."""
    accum_dtype = "float32"
    # Defaults: the fastest on an H200 (benchmarks/RESULTS.md): a few tiles of 16 KB in flight, and no half-empty last
    # iteration where K is known.
    if block_K is None:
        block_K = 1024 if isinstance(K, int) and K % 2048 != 0 else 2048  # columns per iteration
    if num_stages is None:
        num_stages = 4 if block_K <= 1024 else 3
    chunk = 4  # consecutive columns per thread
    chunks = block_K // chunk

    @T.prim_func
    def gemv_kernel(A: T.Tensor((K,), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((N,), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), threads=threads) as bn:
            a = T.alloc_shared((block_K,), dtype)
            b = T.alloc_shared((block_N, block_K), dtype)
            products = T.alloc_fragment((block_N, chunks, chunk), accum_dtype)
            sums = T.alloc_fragment((block_N, chunks), accum_dtype)
            total = T.alloc_fragment((block_N,), accum_dtype)

            T.clear(sums)
            # Stages in shared memory keep more bytes in flight than registers could.
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(A[k * block_K], a)
                T.copy(B[bn * block_N, k * block_K], b)
                # Each thread adds its own columns; one reduction over threads at the end.
                for i, c, j in T.Parallel(block_N, chunks, chunk):
                    products[i, c, j] = T.cast(b[i, c * chunk + j], accum_dtype) * T.cast(a[c * chunk + j], accum_dtype)
                T.reduce_sum(products, sums, dim=2, clear=False)
            T.reduce_sum(sums, total, dim=1)
            T.copy(total, C[bn * block_N])

    return gemv_kernel


if __name__ == "__main__":
    kernel = gemv(N=16384, K=16384)
