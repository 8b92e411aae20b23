"""FlashAttention forward over sequences of different lengths, packed without padding.

Tensors are (tokens, heads, dim). Sequence b is rows cu_seqlens[b] to cu_seqlens[b + 1] of Q and Output, and
cu_seqlens_k[b] to cu_seqlens_k[b + 1] of K and V. Groups of query heads share a head of K and V.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def attention_varlen(
    batch,
    heads,
    tokens,
    tokens_k,
    max_seqlen,  # at least the longest sequence of Q: rows of Output of later queries are not written
    dim,
    is_causal=False,
    group=1,
    slack=8,  # log2 units that a row's scaled maximum may exceed its reference by: bounds the weights
    block_M=64,  # queries per block
    block_N=64,  # keys per iteration
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """Output = softmax(Q @ K^T / sqrt(dim)) @ V, for each sequence and head.

    With is_causal, the last query of a sequence sees all its keys, the one before it one key less, and so on. A query
    that sees no key gets zeros. Q, K and V must be finite.

    A weight is exp2(score * scale - r * scale); r is a row's reference, which its maximum replaces
    once it exceeds r by more than slack / scale. Where score * scale is less than 2**24 in magnitude, rounding
    r * scale adds at most 1/2 to the exponent (one FMA, the compilers' default), and weights are at most
    2**(slack + 1/2) up to rounding. This bounds overflow, not the error; larger scores may give NaN.
    """
    assert slack < 16, "weights, of some 2**(slack + 1/2) at most, are rounded to float16"
    scale = (1.0 / dim) ** 0.5 * 1.44269504  # log2(e) / sqrt(dim): exp2 replaces exp
    accum_dtype = "float32"

    @T.prim_func
    def attention_varlen_kernel(
        Q: T.Tensor((tokens, heads, dim), dtype),
        K: T.Tensor((tokens_k, heads // group, dim), dtype),
        V: T.Tensor((tokens_k, heads // group, dim), dtype),
        cu_seqlens: T.Tensor((batch + 1,), "int32"),
        cu_seqlens_k: T.Tensor((batch + 1,), "int32"),
        Output: T.Tensor((tokens, heads, dim), dtype),
    ):
        with T.Kernel(T.ceildiv(max_seqlen, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), accum_dtype)
            acc_s_cast = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), accum_dtype)
            scores_max = T.alloc_fragment((block_M,), accum_dtype)  # row reference, >= its maximum - slack / scale
            scores_max_prev = T.alloc_fragment((block_M,), accum_dtype)
            scores_scale = T.alloc_fragment((block_M,), accum_dtype)
            scores_sum = T.alloc_fragment((block_M,), accum_dtype)
            logsum = T.alloc_fragment((block_M,), accum_dtype)  # row sum of exponentials

            start = cu_seqlens[bz] + bx * block_M
            length = cu_seqlens[bz + 1] - cu_seqlens[bz]
            start_k = cu_seqlens_k[bz]
            length_k = cu_seqlens_k[bz + 1] - start_k
            # The last key that query i of the block sees is key i + diagonal.
            diagonal = bx * block_M + length_k - length

            # Rows past the end of the sequence belong to the next one: computed, but not stored.
            T.copy(Q[start : start + block_M, by, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            # A row may see no key of an iteration. Less than any score, and finite: never infinity - infinity.
            T.fill(scores_max, -1e30)

            # Blocks past the end of their sequence compute nothing; a causal one stops at its last query's last key.
            last = T.min(length_k - block_M, diagonal) + block_M if is_causal else length_k
            loop_range = T.if_then_else(bx * block_M < length, T.ceildiv(T.max(0, last), block_N), 0)

            for k in T.Pipelined(loop_range, num_stages=num_stages):
                T.copy(K[start_k + k * block_N : start_k + (k + 1) * block_N, by // group, :], K_shared)
                T.copy(V[start_k + k * block_N : start_k + (k + 1) * block_N, by // group, :], V_shared)

                if is_causal:
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(
                            k * block_N + j - i <= diagonal and k * block_N + j < length_k,
                            0,
                            -T.infinity(accum_dtype),
                        )
                else:
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(k * block_N + j < length_k, 0, -T.infinity(accum_dtype))
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

                # Online softmax: acc_o and logsum are rescaled below by exp2((scores_max_prev - scores_max) * scale).
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                if slack:
                    # The reference is kept until the maximum exceeds it by more than slack / scale; while it is
                    # kept, scores_scale is 1.
                    for i in T.Parallel(block_M):
                        grown = (scores_max[i] - scores_max_prev[i]) * scale > slack
                        scores_max[i] = T.if_then_else(grown, scores_max[i], scores_max_prev[i])
                for i in T.Parallel(block_M):
                    scores_scale[i] = T.exp2((scores_max_prev[i] - scores_max[i]) * scale)
                for i, j in T.Parallel(block_M, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_M):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]

                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_M, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            # From here on logsum is its reciprocal: one division per row that a thread holds, not per element.
            for i in T.Parallel(block_M):
                logsum[i] = T.if_then_else(logsum[i] > 0, 1 / logsum[i], 0)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] *= logsum[i]
            for i, j in T.Parallel(block_M, dim):
                if bx * block_M + i < length:
                    Output[start + i, by, j] = acc_o[i, j]

    return attention_varlen_kernel
