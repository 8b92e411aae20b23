"""Causal linear attention: O = (Q @ K^T, masked to keys up to each query) @ V, by chunks, with a running state."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-2, -1])
def linear_attention(
    batch,
    seq_len,
    heads,
    dim,  # of Q and K
    dim_v,
    chunk=64,  # tokens per iteration
    block_V=64,  # of dim_v
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """O[t] = sum over s <= t of (Q[t] . K[s]) / sqrt(dim) * V[s], and State = K^T @ V over all tokens.

    Blocks hold all of dim and a part of dim_v. The sequence may end within a chunk.
    """
    accum_dtype = "float32"
    scale = (1.0 / dim) ** 0.5

    @T.prim_func
    def linear_attention_kernel(
        Q: T.Tensor((batch, seq_len, heads, dim), dtype),
        K: T.Tensor((batch, seq_len, heads, dim), dtype),
        V: T.Tensor((batch, seq_len, heads, dim_v), dtype),
        O: T.Tensor((batch, seq_len, heads, dim_v), dtype),
        State: T.Tensor((batch, heads, dim, dim_v), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(dim_v, block_V), heads, batch, threads=threads) as (bv, h, b):
            Q_shared = T.alloc_shared((chunk, dim), dtype)
            K_shared = T.alloc_shared((chunk, dim), dtype)
            V_shared = T.alloc_shared((chunk, block_V), dtype)
            state = T.alloc_fragment((dim, block_V), accum_dtype)
            state_shared = T.alloc_shared((dim, block_V), dtype)
            scores = T.alloc_fragment((chunk, chunk), accum_dtype)
            scores_cast = T.alloc_fragment((chunk, chunk), dtype)
            o = T.alloc_fragment((chunk, block_V), accum_dtype)

            T.clear(state)
            for c in T.Pipelined(T.ceildiv(seq_len, chunk), num_stages=num_stages):
                t = c * chunk
                T.copy(Q[b, t : t + chunk, h, :], Q_shared)
                T.copy(K[b, t : t + chunk, h, :], K_shared)
                T.copy(V[b, t : t + chunk, h, bv * block_V : (bv + 1) * block_V], V_shared)

                # Within the chunk: the scores, up to the diagonal.
                T.clear(scores)
                T.gemm(Q_shared, K_shared, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(chunk, chunk):
                    scores_cast[i, j] = T.if_then_else(i >= j, scores[i, j], 0)
                T.clear(o)
                T.gemm(scores_cast, V_shared, o, policy=T.GemmWarpPolicy.FullRow)

                # From the previous chunks: their state, which is then updated with this chunk.
                T.copy(state, state_shared)
                T.gemm(Q_shared, state_shared, o, policy=T.GemmWarpPolicy.FullRow)
                T.gemm(K_shared, V_shared, state, transpose_A=True, policy=T.GemmWarpPolicy.FullRow)

                for i, j in T.Parallel(chunk, block_V):
                    o[i, j] *= scale
                T.copy(o, O[b, t : t + chunk, h, bv * block_V : (bv + 1) * block_V])
            T.copy(state, State[b, h, :, bv * block_V : (bv + 1) * block_V])

    return linear_attention_kernel
