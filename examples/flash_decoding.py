"""Flash decoding: attention of one new token per sequence over its cache of keys and values.

The cache is split into num_split parts, so that more blocks run at the same time: each attends over its part of the
keys, and a second kernel combines the parts. Query heads that share a head of K and V are the rows of one tile. The
cache is (batch, max_len, kv_heads, dim); sequence b attends to its first lengths[b] tokens, and the output of an empty
one is zero.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def flash_decoding(
    batch,
    kv_heads,
    group,  # query heads that share one head of K and V
    max_len,
    dim,
    num_split=4,  # parts of a sequence's cache
    block_H=64,  # rows of a tile: query heads that share a head of K and V, the rest are padding
    block_N=64,  # keys per iteration
    num_stages=2,
    threads=128,
    zero_tail=False,  # rows of V beyond lengths[b] are loaded as zeros: by cp.async, TMA has no such bound
    dtype="float16",
):
    """Output = softmax(Q @ K^T / sqrt(dim)) @ V over the first lengths[b] tokens of each sequence.

    Query head h * group + g attends to head h of K and V, so Q is also (batch, heads, dim). Q and the tokens of K and V
    must be finite. A weight is exp2(score * scale - m * scale), with a row's maximum m. Where score * scale is
    less than 2**24 in magnitude, rounding m * scale adds at most 1/2 to the exponent (one FMA, the compilers' default),
    and weights are at most 2**(1/2) up to rounding. This bounds overflow, not the error; larger scores may give NaN.
    """
    scale = (1.0 / dim) ** 0.5 * 1.44269504  # log2(e) / sqrt(dim): exp2 replaces exp
    accum_dtype = "float32"

    @T.prim_func
    def flash_decoding_kernel(
        Q: T.Tensor((batch, kv_heads, group, dim), dtype),
        K: T.Tensor((batch, max_len, kv_heads, dim), dtype),
        V: T.Tensor((batch, max_len, kv_heads, dim), dtype),
        lengths: T.Tensor((batch,), "int32"),
        Output: T.Tensor((batch, kv_heads, group, dim), dtype),
    ):
        # Per part: its normalised output, and log2 of the sum that normalised it.
        partial = T.alloc_global((batch, kv_heads, num_split, group, dim), accum_dtype)
        partial_lse = T.alloc_global((batch, kv_heads, num_split, group), accum_dtype)

        # split
        with T.Kernel(num_split, T.ceildiv(group, block_H) * kv_heads, batch, threads=threads) as (part, by, b):
            Q_shared = T.alloc_shared((block_H, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_H, block_N), accum_dtype)
            acc_s_cast = T.alloc_fragment((block_H, block_N), dtype)
            acc_o = T.alloc_fragment((block_H, dim), accum_dtype)
            scores_max = T.alloc_fragment((block_H,), accum_dtype)  # row maximum
            scores_max_prev = T.alloc_fragment((block_H,), accum_dtype)
            scores_scale = T.alloc_fragment((block_H,), accum_dtype)
            scores_sum = T.alloc_fragment((block_H,), accum_dtype)
            logsum = T.alloc_fragment((block_H,), accum_dtype)  # row sum of exponentials

            head = by % kv_heads
            g = by // kv_heads * block_H
            # A part is a whole number of iterations: only the last iteration of a sequence has masked keys. Parts
            # behind it are empty.
            length = lengths[b]
            k_tiles_per_split = T.ceildiv(T.ceildiv(length, block_N), num_split)
            first = part * k_tiles_per_split
            loop_range = T.max(0, T.min(k_tiles_per_split, T.ceildiv(length, block_N) - first))

            T.copy(Q[b, head, g : g + block_H, :], Q_shared)
            # logsum is the sum of a row's exponentials.
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))

            for k in T.Pipelined(loop_range, num_stages=num_stages):
                start = (first + k) * block_N
                T.copy(K[b, start : start + block_N, head, :], K_shared)
                if zero_tail:
                    for i, d in T.Parallel(block_N, dim):
                        V_shared[i, d] = T.if_then_else(start + i < length, V[b, start + i, head, d], 0)
                else:
                    T.copy(V[b, start : start + block_N, head, :], V_shared)

                # The first key of an iteration is never masked, so a row's maximum is finite from iteration 0 on.
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.if_then_else(start + j < length, 0, -T.infinity(accum_dtype))
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

                # Online softmax: the accumulators are rescaled to the rows' new maxima.
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    scores_scale[i] = T.exp2((scores_max_prev[i] - scores_max[i]) * scale)
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_H):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]

                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_H, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            # An empty part stores zeros, and minus infinity as the log2 of its sum of exponentials. From here on
            # scores_scale is logsum's reciprocal.
            for i in T.Parallel(block_H):
                scores_scale[i] = T.if_then_else(logsum[i] > 0, 1 / logsum[i], 0)
            for i, j in T.Parallel(block_H, dim):
                acc_o[i, j] *= scores_scale[i]
            for i in T.Parallel(block_H):
                logsum[i] = T.log2(logsum[i]) + scores_max[i] * scale
            T.copy(acc_o, partial[b, head, part, g : g + block_H, :])
            T.copy(logsum, partial_lse[b, head, part, g : g + block_H])

        # combine
        with T.Kernel(group, kv_heads, batch, threads=128) as (g, head, b):
            lse = T.alloc_fragment((num_split,), accum_dtype)
            lse_max = T.alloc_fragment((1,), accum_dtype)
            weight = T.alloc_fragment((num_split,), accum_dtype)
            total = T.alloc_fragment((1,), accum_dtype)
            out = T.alloc_fragment((dim,), accum_dtype)

            for s in T.Parallel(num_split):
                lse[s] = partial_lse[b, head, s, g]
            T.reduce_max(lse, lse_max, dim=0)
            # The weight of an empty part is 0; without tokens, all parts are empty.
            for s in T.Parallel(num_split):
                weight[s] = T.if_then_else(lse[s] == -T.infinity(accum_dtype), 0, T.exp2(lse[s] - lse_max[0]))
            T.reduce_sum(weight, total, dim=0)

            T.clear(out)
            for s in T.serial(num_split):
                # Loaded again: lse[s] may be in a register of another thread.
                lse_s = partial_lse[b, head, s, g]
                share = T.if_then_else(lse_s == -T.infinity(accum_dtype), 0, T.exp2(lse_s - lse_max[0]) / total[0])
                for d in T.Parallel(dim):
                    out[d] += partial[b, head, s, g, d] * share
            T.copy(out, Output[b, head, g, :])

    return flash_decoding_kernel


if __name__ == "__main__":
    kernel = flash_decoding(batch=8, kv_heads=8, group=8, max_len=8192, dim=128, num_split=8)
