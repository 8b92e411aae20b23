"""Block-sparse attention: softmax(Q @ K^T / sqrt(dim)) @ V over the blocks of keys that a mask keeps.

Tensors are (batch, heads, seq_len, dim). The mask has a flag for each block of queries and block of keys, of each head:
blocks with flag 0 are neither loaded nor computed. Sequences need not be whole tiles: keys past
their end are masked.
"""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def attention_block_sparse(
    batch,
    heads,
    seq_len,
    dim,
    is_causal=False,
    slack=8,  # log2 units that a row's scaled maximum may exceed its reference by: bounds the weights
    block_M=64,  # queries per block of the mask
    block_N=64,  # keys per iteration, a block of the mask
    num_stages=2,
    threads=128,
    dtype="float16",
):
    """Output = softmax(Q @ K^T / sqrt(dim)) @ V, for each batch and head, over the keys whose block the mask keeps.

    With is_causal, query i sees the keys 0..i of those only. A query that sees none gives zeros. Q, K and V must be
    finite.

    A weight is exp2(score * scale - r * scale); r is a row's reference, which its maximum replaces
    once it exceeds r by more than slack / scale. Where score * scale is less than 2**24 in magnitude, rounding
    r * scale adds at most 1/2 to the exponent (one FMA, the compilers' default), and weights are at most
    2**(slack + 1/2) up to rounding. This bounds overflow, not the error; larger scores may give NaN.
    """
    assert slack < 16, "weights, of some 2**(slack + 1/2) at most, are rounded to float16"
    scale = (1.0 / dim) ** 0.5 * 1.44269504  # log2(e) / sqrt(dim): exp2 replaces exp
    shape = (batch, heads, seq_len, dim)
    accum_dtype = "float32"

    @T.prim_func
    def block_sparse_kernel(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Kept: T.Tensor((batch, heads, T.ceildiv(seq_len, block_M), T.ceildiv(seq_len, block_N)), "bool"),
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
            row_sum = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, by, bx * block_M : (bx + 1) * block_M, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(row_sum, 0)
            # A row may see no key of an active block. Less than any score, and finite: never inf - inf.
            T.fill(scores_max, -1e30)

            if is_causal:
                # A causal block stops at its last query: all later keys are masked.
                loop_range = T.min(T.ceildiv(seq_len, block_N), T.ceildiv((bx + 1) * block_M, block_N))
            else:
                loop_range = T.ceildiv(seq_len, block_N)

            for k in T.Pipelined(loop_range, num_stages=num_stages):
                if Kept[bz, by, bx, k] != 0:
                    T.copy(K[bz, by, k * block_N : (k + 1) * block_N, :], K_shared)
                    T.copy(V[bz, by, k * block_N : (k + 1) * block_N, :], V_shared)

                    if is_causal:
                        # A query sees no later key, and none past the end of the sequence.
                        for i, j in T.Parallel(block_M, block_N):
                            acc_s[i, j] = T.if_then_else(
                                bx * block_M + i >= k * block_N + j, 0, -T.infinity(accum_dtype)
                            )
                    else:
                        # Keys past the end of the sequence are masked.
                        for i, j in T.Parallel(block_M, block_N):
                            acc_s[i, j] = T.if_then_else(k * block_N + j < seq_len, 0, -T.infinity(accum_dtype))
                    T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

                    # Online softmax: each iteration rescales by exp2((scores_max_prev - scores_max) * scale).
                    T.copy(scores_max, scores_max_prev)
                    T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                    if slack:
                        # The reference is kept until the maximum exceeds it by more than slack / scale; while it
                        # is kept, scores_scale is 1.
                        for i in T.Parallel(block_M):
                            grown = (scores_max[i] - scores_max_prev[i]) * scale > slack
                            scores_max[i] = T.if_then_else(grown, scores_max[i], scores_max_prev[i])
                    for i in T.Parallel(block_M):
                        scores_scale[i] = T.exp2((scores_max_prev[i] - scores_max[i]) * scale)
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                    T.reduce_sum(acc_s, scores_sum, dim=1)
                    for i in T.Parallel(block_M):
                        row_sum[i] = row_sum[i] * scores_scale[i] + scores_sum[i]

                    T.copy(acc_s, acc_s_cast)
                    for i, j in T.Parallel(block_M, dim):
                        acc_o[i, j] *= scores_scale[i]
                    T.gemm(acc_s_cast, V_shared, acc_o, policy=T.GemmWarpPolicy.FullRow)

            # From here on row_sum is its reciprocal: one division per row that a thread holds, not per element.
            for i in T.Parallel(block_M):
                row_sum[i] = T.if_then_else(row_sum[i] > 0, 1 / row_sum[i], 0)
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] *= row_sum[i]
            T.copy(acc_o, Output[bz, by, bx * block_M : (bx + 1) * block_M, :])

    return block_sparse_kernel


if __name__ == "__main__":
    kernel = attention_block_sparse(batch=1, heads=32, seq_len=8192, dim=128, is_causal=True)
