"""Multi-head latent attention, one new token per sequence: all heads attend to one cache of compressed keys and values.

A cached token is a latent vector, which is both key and value, and a positional key. Heads are the rows of a tile. With
page_size, the cache is in pages, (pages, page_size, ...), which block_table lists for each sequence. Without page_size,
the cache is contiguous, (batch, max_len, ...). Sequence b attends to its first lengths[b] tokens; the output of an
empty sequence is zero.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def mla_decode(
    batch,
    heads,
    dim=512,  # elements of a latent vector
    pe_dim=64,  # elements of a positional key
    page_size=0,  # tokens per page
    num_split=1,  # parts of a sequence's cache; with two or more there is a second kernel, which combines them
    block_H=64,  # heads per block
    block_N=64,  # tokens per iteration
    num_stages=2,
    threads=256,
    slack=8,  # log2 units that a row's scaled maximum may exceed its reference by: bounds the weights
    zero_tail=False,  # rows of KV beyond lengths[b] are loaded as zeros: by cp.async, TMA has no such bound
    dtype="float16",
):
    """Output = softmax((Q @ KV^T + Q_pe @ K_pe^T) / sqrt(dim + pe_dim)) @ KV over a sequence's tokens.

    Q, Q_pe and the tokens must be finite. A token's weight is exp2(score * scale - r * scale); r is a row's reference,
    which its maximum replaces once it exceeds r by more than slack / scale. Where score * scale is less than
    2**24 in magnitude, rounding r * scale adds at most 1/2 to the exponent (one FMA, the compilers' default), and
    weights are at most 2**(slack + 1/2) up to rounding. This bounds overflow, not the error; larger ones may give NaN.
    """
    assert page_size % block_N == 0, "an iteration's tokens are in one page"
    assert slack < 16, "weights, of some 2**(slack + 1/2) at most, are rounded to float16"
    scale = (1.0 / (dim + pe_dim)) ** 0.5 * 1.44269504  # log2(e) / sqrt(dim + pe_dim): exp2 replaces exp
    accum_dtype = "float32"
    max_len = T.dynamic("max_len")  # tokens that a contiguous cache has room for
    pages, max_pages = T.dynamic("pages"), T.dynamic("max_pages")  # in the pool, and of one sequence

    @T.macro
    def attend(Q, Q_pe, KV, K_pe, table, lengths, Output, partial, partial_lse):
        # attend
        with T.Kernel(num_split, T.ceildiv(heads, block_H), batch, threads=threads) as (part, by, b):
            Q_shared = T.alloc_shared((block_H, dim), dtype)
            Q_pe_shared = T.alloc_shared((block_H, pe_dim), dtype)
            KV_shared = T.alloc_shared((block_N, dim), dtype)
            K_pe_shared = T.alloc_shared((block_N, pe_dim), dtype)
            S_shared = T.alloc_shared((block_H, block_N), dtype)
            acc_s = T.alloc_fragment((block_H, block_N), accum_dtype)
            acc_o = T.alloc_fragment((block_H, dim), accum_dtype)
            scores_max = T.alloc_fragment((block_H,), accum_dtype)  # row reference, >= its maximum - slack / scale
            scores_max_prev = T.alloc_fragment((block_H,), accum_dtype)
            scores_scale = T.alloc_fragment((block_H,), accum_dtype)
            scores_sum = T.alloc_fragment((block_H,), accum_dtype)
            logsum = T.alloc_fragment((block_H,), accum_dtype)  # row sum of exponentials

            h = by * block_H
            # Only the last iteration of a sequence has masked tokens.
            length = lengths[b]
            k_tiles = T.ceildiv(length, block_N)
            if num_split == 1:
                first, loop_range = 0, k_tiles
            else:
                # A part is a whole number of iterations.
                k_tiles_per_split = T.ceildiv(k_tiles, num_split)
                first = part * k_tiles_per_split
                loop_range = T.max(0, T.min(k_tiles_per_split, k_tiles - first))

            T.copy(Q[b, h : h + block_H, :], Q_shared)
            T.copy(Q_pe[b, h : h + block_H, :], Q_pe_shared)
            # logsum is the sum of a row's exponentials.
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))

            for k in T.Pipelined(loop_range, num_stages=num_stages):
                start = (first + k) * block_N
                if page_size:
                    page, row = table[b, start // page_size], start % page_size
                else:
                    page, row = b, start
                if zero_tail:
                    end = row + length - start if page_size else length  # of the sequence, counted as `row` is
                    for i, d in T.Parallel(block_N, dim):
                        KV_shared[i, d] = T.if_then_else(row + i < end, KV[page, row + i, d], 0)
                else:
                    T.copy(KV[page, row : row + block_N, :], KV_shared)
                T.copy(K_pe[page, row : row + block_N, :], K_pe_shared)

                # The first token of an iteration is never masked, so a row's maximum is finite from iteration 0 on.
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.if_then_else(start + j < length, 0, -T.infinity(accum_dtype))
                T.gemm(Q_shared, KV_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
                T.gemm(Q_pe_shared, K_pe_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)

                # Online softmax. A row's reference is kept while its maximum exceeds it by at most slack / scale; the
                # accumulators are rescaled to it, by 1 while it is kept, which warps skip where they vote.
                T.copy(scores_max, scores_max_prev)
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_H):
                    grown = (scores_max[i] - scores_max_prev[i]) * scale > slack
                    scores_max[i] = T.if_then_else(grown, scores_max[i], scores_max_prev[i])
                for i in T.Parallel(block_H):
                    scores_scale[i] = T.exp2((scores_max_prev[i] - scores_max[i]) * scale)
                for i, j in T.Parallel(block_H, block_N):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_H):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]

                # Through shared memory: the second GEMM splits the columns of the output; each part reads all scores.
                T.copy(acc_s, S_shared)
                for i, j in T.Parallel(block_H, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.gemm(S_shared, KV_shared, acc_o, policy=T.GemmWarpPolicy.FullCol)

            # Without tokens logsum and the output are 0. From here on scores_scale is logsum's reciprocal.
            for i in T.Parallel(block_H):
                scores_scale[i] = T.if_then_else(logsum[i] > 0, 1 / logsum[i], 0)
            for i, j in T.Parallel(block_H, dim):
                acc_o[i, j] *= scores_scale[i]
            if num_split == 1:
                T.copy(acc_o, Output[b, h : h + block_H, :])
            else:
                # Minus infinity for an empty part.
                for i in T.Parallel(block_H):
                    logsum[i] = T.log2(logsum[i]) + scores_max[i] * scale
                T.copy(acc_o, partial[b, part, h : h + block_H, :])
                T.copy(logsum, partial_lse[b, part, h : h + block_H])

    @T.macro
    def combine(partial, partial_lse, Output):
        # combine
        with T.Kernel(heads, batch, threads=128) as (h, b):
            lse = T.alloc_fragment((num_split,), accum_dtype)
            lse_max = T.alloc_fragment((1,), accum_dtype)
            total = T.alloc_fragment((1,), accum_dtype)
            out = T.alloc_fragment((dim,), accum_dtype)

            for s in T.Parallel(num_split):
                lse[s] = partial_lse[b, s, h]
            T.reduce_max(lse, lse_max, dim=0)
            # The weight of an empty part is 0; without tokens, all parts are empty.
            for s in T.Parallel(num_split):
                lse[s] = T.if_then_else(lse[s] == -T.infinity(accum_dtype), 0, T.exp2(lse[s] - lse_max[0]))
            T.reduce_sum(lse, total, dim=0)

            T.clear(out)
            for s in T.serial(num_split):
                lse_s = partial_lse[b, s, h]
                share = T.if_then_else(lse_s == -T.infinity(accum_dtype), 0, T.exp2(lse_s - lse_max[0]) / total[0])
                for d in T.Parallel(dim):
                    out[d] += partial[b, s, h, d] * share
            T.copy(out, Output[b, h, :])

    @T.macro
    def decode(Q, Q_pe, KV, K_pe, table, lengths, Output):
        if num_split == 1:
            attend(Q, Q_pe, KV, K_pe, table, lengths, Output, None, None)
        else:
            # Per part: its normalised output, and log2 of the sum that normalised it.
            partial = T.alloc_global((batch, num_split, heads, dim), accum_dtype)
            partial_lse = T.alloc_global((batch, num_split, heads), accum_dtype)
            attend(Q, Q_pe, KV, K_pe, table, lengths, Output, partial, partial_lse)
            combine(partial, partial_lse, Output)

    @T.prim_func
    def mla_decode_kernel(
        Q: T.Tensor((batch, heads, dim), dtype),
        Q_pe: T.Tensor((batch, heads, pe_dim), dtype),
        KV: T.Tensor((batch, max_len, dim), dtype),
        K_pe: T.Tensor((batch, max_len, pe_dim), dtype),
        lengths: T.Tensor((batch,), "int32"),
        Output: T.Tensor((batch, heads, dim), dtype),
    ):
        decode(Q, Q_pe, KV, K_pe, None, lengths, Output)

    @T.prim_func
    def mla_decode_paged_kernel(
        Q: T.Tensor((batch, heads, dim), dtype),
        Q_pe: T.Tensor((batch, heads, pe_dim), dtype),
        KV: T.Tensor((pages, page_size, dim), dtype),
        K_pe: T.Tensor((pages, page_size, pe_dim), dtype),
        block_table: T.Tensor((batch, max_pages), "int32"),
        lengths: T.Tensor((batch,), "int32"),
        Output: T.Tensor((batch, heads, dim), dtype),
    ):
        decode(Q, Q_pe, KV, K_pe, block_table, lengths, Output)

    return mla_decode_paged_kernel if page_size else mla_decode_kernel
