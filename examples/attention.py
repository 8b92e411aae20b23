"""FlashAttention forward: softmax(Q @ K^T / sqrt(dim)) @ V without ever storing the matrix of scores.

Tensors are (batch, seq_len, heads, dim); groups of query heads share a head of K and V. Sequences need not be whole
tiles: keys past their end are masked.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def attention(
    batch,
    heads,
    seq_len,
    dim,
    is_causal=False,
    group=1,  # query heads that share one head of K and V
    window=0,  # keys that a query of a causal kernel sees, itself included; 0 for all
    slack=8,  # log2 units that a row's scaled maximum may exceed its reference by: bounds the weights
    block_M=64,  # queries per block
    block_N=64,  # keys per iteration
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """Output = softmax(Q @ K^T / sqrt(dim)) @ V, for each batch and head.

    With is_causal, query i sees the keys 0..i only. With window, it sees the last `window` of those only. Q, K and V
    must be finite. A weight is exp2(score * scale - r * scale). With slack, r is a row's reference, replaced once the
    maximum exceeds it by more than slack / scale. Without slack, r is the row's maximum. Where score * scale is
    less than 2**24 in magnitude, rounding r * scale adds at most 1/2 to the exponent (one FMA, the compilers' default):
    weights are at most 2**(slack + 1/2) up to rounding. This bounds overflow, not the error; larger ones may give NaN.
    """
    assert slack < 16, "weights, of some 2**(slack + 1/2) at most, are rounded to float16"
    scale = (1.0 / dim) ** 0.5 * 1.44269504  # log2(e) / sqrt(dim): exp2 replaces exp
    shape = (batch, seq_len, heads, dim)
    kv_shape = (batch, seq_len, heads // group, dim)
    accum_dtype = "float32"

    @T.prim_func
    def attention_kernel(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(kv_shape, dtype),
        V: T.Tensor(kv_shape, dtype),
        Output: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (bx, by, bz):
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

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            # logsum is the sum of a row's exponentials.
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            if window:
                # A row may see no key in the first iterations. Less than any score, and finite: never inf - inf.
                T.fill(scores_max, -1e30)
            else:
                T.fill(scores_max, -T.infinity(accum_dtype))

            if is_causal:
                # A causal block stops at its last query: all later keys are masked.
                loop_range = T.min(T.ceildiv(seq_len, block_N), T.ceildiv((bx + 1) * block_M, block_N))
            else:
                loop_range = T.ceildiv(seq_len, block_N)

            # With a window it starts at the first key that its first query sees.
            first = T.max(0, bx * block_M - window + 1) // block_N if window else 0

            for k in T.Pipelined(first, loop_range, num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by // group, :], K_shared)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by // group, :], V_shared)

                if window:
                    # A query sees itself and the keys of the window before it: none past the end of the sequence.
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(
                            bx * block_M + i >= k * block_N + j and bx * block_M + i < k * block_N + j + window,
                            0,
                            -T.infinity(accum_dtype),
                        )
                elif is_causal:
                    # A query sees no later key, and none past the end of the sequence. All see key 0: each row's
                    # maximum is finite from iteration 0 on.
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(bx * block_M + i >= k * block_N + j, 0, -T.infinity(accum_dtype))
                else:
                    # Keys past the end of the sequence are masked. Key 0 is not: each row's maximum is finite from
                    # iteration 0 on.
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(k * block_N + j < seq_len, 0, -T.infinity(accum_dtype))
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
                logsum[i] = 1 / logsum[i]
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] *= logsum[i]
            T.copy(acc_o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])

    return attention_kernel


if __name__ == "__main__":
    kernel = attention(batch=8, heads=32, seq_len=4096, dim=128, is_causal=True)
