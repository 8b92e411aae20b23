"""Mamba-2, the state of each chunk: the contributions of its inputs, each decayed to the chunk's end.

x is (batch, seqlen, heads, headdim), B is (batch, seqlen, groups, dstate); dt and dA_cumsum, the running sum of dt * A,
are (batch, heads, chunks, chunk_size).
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def chunk_state(
    batch,
    seqlen,
    heads,
    groups=1,
    chunk_size=256,
    headdim=64,
    dstate=128,
    block_M=64,  # of headdim
    block_N=128,  # of dstate
    block_K=None,
    num_stages=None,
    threads=128,
    dtype="float16",
):
    """States[p, n] = sum over a chunk's tokens t of x[t, p] * dt[t] * exp(dA_cumsum[last] - dA_cumsum[t]) * B[t, n]."""
    accum_dtype = "float32"
    log2e = 1.44269504
    chunks = T.ceildiv(seqlen, chunk_size)
    tiles = T.ceildiv(headdim, block_M) * T.ceildiv(dstate, block_N)  # of a state

    # Defaults: the fastest on an H200 (benchmarks/RESULTS.md): tiles so small that four blocks share each of its 132
    # SMs, and larger ones where the grid is known to fit three blocks per SM.
    known = isinstance(batch, int) and isinstance(seqlen, int) and isinstance(heads, int)
    few = known and batch * chunks * heads * tiles <= 3 * 132
    if block_K is None:
        block_K = 32 if few else 16  # tokens per iteration
    if num_stages is None:
        num_stages = 4 if block_K >= 32 else 6

    @T.prim_func
    def chunk_state_kernel(
        B: T.Tensor((batch, seqlen, groups, dstate), dtype),
        x: T.Tensor((batch, seqlen, heads, headdim), dtype),
        dt: T.Tensor((batch, heads, chunks, chunk_size), dtype),
        dA_cumsum: T.Tensor((batch, heads, chunks, chunk_size), dtype),
        States: T.Tensor((batch, chunks, heads, headdim, dstate), dtype),
    ):
        with T.Kernel(heads, chunks * tiles, batch, threads=threads) as (head, tile_of_chunks, b):
            x_shared = T.alloc_shared((block_K, block_M), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            decayed_shared = T.alloc_shared((chunk_size,), dtype)  # dt, decayed from its token to the chunk's end
            decayed_k = T.alloc_fragment((block_K,), dtype)
            x_decayed = T.alloc_fragment((block_M, block_K), dtype)
            state = T.alloc_fragment((block_M, block_N), accum_dtype)

            tile = tile_of_chunks % tiles
            chunk = tile_of_chunks // tiles
            group = 0 if groups == 1 else head // (heads // groups)
            first = chunk * chunk_size
            m = tile // T.ceildiv(dstate, block_N) * block_M
            n = tile % T.ceildiv(dstate, block_N) * block_N

            last = T.cast(dA_cumsum[b, head, chunk, chunk_size - 1], accum_dtype)
            for t in T.Parallel(chunk_size):
                decay = T.exp2((last - T.cast(dA_cumsum[b, head, chunk, t], accum_dtype)) * log2e)
                decayed_shared[t] = decay * T.cast(dt[b, head, chunk, t], accum_dtype)

            T.clear(state)
            for k in T.Pipelined(T.ceildiv(chunk_size, block_K), num_stages=num_stages):
                t = first + k * block_K
                T.copy(x[b, t : t + block_K, head, m : m + block_M], x_shared)
                T.copy(B[b, t : t + block_K, group, n : n + block_N], B_shared)
                T.copy(decayed_shared[k * block_K : (k + 1) * block_K], decayed_k)
                # x is the GEMM's A operand, transposed, from registers: it is decayed as it is loaded.
                for i, j in T.Parallel(block_M, block_K):
                    x_decayed[i, j] = x_shared[j, i]
                for i, j in T.Parallel(block_M, block_K):
                    x_decayed[i, j] *= decayed_k[j]
                T.gemm(x_decayed, B_shared, state)
            T.copy(state, States[b, chunk, head, m : m + block_M, n : n + block_N])

    return chunk_state_kernel


if __name__ == "__main__":
    kernel = chunk_state(batch=8, seqlen=4096, heads=80)
