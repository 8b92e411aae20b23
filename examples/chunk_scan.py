"""Mamba-2, the output of each chunk: from the state before it, and from its own tokens.

x and Y are (batch, seqlen, heads, headdim), C is (batch, seqlen, groups, dstate), CB = C @ B^T of each chunk is (batch,
chunks, groups, chunk_size, chunk_size); dt and dA_cumsum, the running sum of dt * A, are (batch, heads, chunks,
chunk_size); States, of which chunk c reads that of chunk c - 1, is (batch, chunks, heads, headdim, dstate).
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def chunk_scan(
    batch,
    seqlen,
    heads,
    groups=1,
    chunk_size=256,
    headdim=64,
    dstate=128,
    block_M=64,  # tokens per block
    block_N=64,  # of headdim
    block_K=64,  # tokens per iteration
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """Y[m] = exp(dA[m]) * C[m] @ State^T + D * x[m] + sum over t <= m of CB[m, t] * exp(dA[m] - dA[t]) * dt[t] * x[t].

    All within one chunk, where dA is dA_cumsum.
    """
    accum_dtype = "float32"
    log2e = 1.44269504
    chunks = T.ceildiv(seqlen, chunk_size)
    tiles = T.ceildiv(chunk_size, block_M) * T.ceildiv(headdim, block_N)  # of a chunk

    @T.prim_func
    def chunk_scan_kernel(
        CB: T.Tensor((batch, chunks, groups, chunk_size, chunk_size), dtype),
        x: T.Tensor((batch, seqlen, heads, headdim), dtype),
        dt: T.Tensor((batch, heads, chunks, chunk_size), dtype),
        dA_cumsum: T.Tensor((batch, heads, chunks, chunk_size), dtype),
        C: T.Tensor((batch, seqlen, groups, dstate), dtype),
        States: T.Tensor((batch, chunks, heads, headdim, dstate), dtype),
        D: T.Tensor((heads,), dtype),
        Y: T.Tensor((batch, seqlen, heads, headdim), dtype),
    ):
        with T.Kernel(heads, chunks * tiles, batch, threads=threads) as (head, tile_of_chunks, b):
            CB_shared = T.alloc_shared((block_M, block_K), dtype)
            x_shared = T.alloc_shared((block_K, block_N), dtype)
            C_shared = T.alloc_shared((block_M, dstate), dtype)
            State_shared = T.alloc_shared((block_N, dstate), dtype)
            dA_shared = T.alloc_shared((chunk_size,), dtype)
            dt_shared = T.alloc_shared((chunk_size,), dtype)
            decayed_shared = T.alloc_shared((chunk_size,), dtype)  # dt, decayed from its token to the tile's start
            weights = T.alloc_fragment((block_M, block_K), accum_dtype)
            weights_cast = T.alloc_fragment((block_M, block_K), dtype)
            dA_m = T.alloc_fragment((block_M,), accum_dtype)
            dA_k = T.alloc_fragment((block_K,), accum_dtype)
            dt_k = T.alloc_fragment((block_K,), accum_dtype)
            decayed_k = T.alloc_fragment((block_K,), dtype)
            y = T.alloc_fragment((block_M, block_N), accum_dtype)

            tile = tile_of_chunks % tiles
            chunk = tile_of_chunks // tiles
            group = 0 if groups == 1 else head // (heads // groups)
            # The last tokens need the most iterations: they come first, so that short blocks fill the tail of the grid.
            m = (T.ceildiv(chunk_size, block_M) - 1 - tile // T.ceildiv(headdim, block_N)) * block_M
            n = tile % T.ceildiv(headdim, block_N) * block_N
            first = chunk * chunk_size

            T.copy(C[b, first + m : first + m + block_M, group, 0:dstate], C_shared)
            T.copy(States[b, chunk, head, n : n + block_N, 0:dstate], State_shared)
            # Loaded unconditionally: a load in a branch would be waited for inside it.
            before = dA_cumsum[b, head, chunk, T.max(m - 1, 0)]
            skip = D[head]
            # Decays are powers of 2. Up to the tile's start, everything before it decays by one factor per token.
            start = T.if_then_else(m > 0, T.cast(before, accum_dtype) * log2e, 0)
            for t in T.Parallel(chunk_size):
                dA_t = dA_cumsum[b, head, chunk, t]
                dt_t = dt[b, head, chunk, t]
                dA_shared[t] = dA_t
                dt_shared[t] = dt_t
                decayed_shared[t] = T.exp2(start - T.cast(dA_t, accum_dtype) * log2e) * T.cast(dt_t, accum_dtype)

            # The contribution of the state before the chunk.
            T.gemm(C_shared, State_shared, y, transpose_B=True, clear_accum=True)
            for i, j in T.Parallel(block_M, block_N):
                y[i, j] *= T.exp2(start)

            # The contribution of the chunk's own tokens, up to each token.
            for k in T.Pipelined(T.ceildiv(m + block_M, block_K), num_stages=num_stages):
                t = first + k * block_K
                T.copy(CB[b, chunk, group, m : m + block_M, k * block_K : (k + 1) * block_K], CB_shared)
                T.copy(x[b, t : t + block_K, head, n : n + block_N], x_shared)
                if (k + 1) * block_K <= m:
                    # All tokens of this iteration precede the tile.
                    T.copy(decayed_shared[k * block_K : (k + 1) * block_K], decayed_k)
                    T.copy(CB_shared, weights_cast)
                    for i, j in T.Parallel(block_M, block_K):
                        weights_cast[i, j] *= decayed_k[j]
                else:
                    T.copy(dA_shared[m : m + block_M], dA_m)
                    T.copy(dA_shared[k * block_K : (k + 1) * block_K], dA_k)
                    T.copy(dt_shared[k * block_K : (k + 1) * block_K], dt_k)
                    if k == m // block_K:
                        # Earlier contributions decay from the tile's start to each of its tokens.
                        for i, j in T.Parallel(block_M, block_N):
                            y[i, j] *= T.exp2(dA_m[i] * log2e - start)
                    T.copy(CB_shared, weights)
                    for i, j in T.Parallel(block_M, block_K):
                        weights[i, j] *= T.exp2(dA_m[i] * log2e - dA_k[j] * log2e) * dt_k[j]
                    # x of the token itself has the additional weight D.
                    for i, j in T.Parallel(block_M, block_K):
                        if m + i == k * block_K + j:
                            weights[i, j] += T.cast(skip, accum_dtype)
                    for i, j in T.Parallel(block_M, block_K):
                        weights[i, j] = T.if_then_else(m + i >= k * block_K + j, weights[i, j], 0)
                    T.copy(weights, weights_cast)
                T.gemm(weights_cast, x_shared, y)

            T.copy(y, Y[b, first + m : first + m + block_M, head, n : n + block_N])

    return chunk_scan_kernel


if __name__ == "__main__":
    kernel = chunk_scan(batch=8, seqlen=4096, heads=80)
