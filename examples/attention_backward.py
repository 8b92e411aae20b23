"""FlashAttention for training: the forward pass that stores each row's log-sum-exp, and the backward pass.

Tensors are (batch, seq_len, heads, dim), Lse is (batch, heads, seq_len). The matrix of scores is not stored: the
backward pass recomputes it from Q, K and Lse.
"""

import tilelang
import tilelang.language as T
from tilelang.contrib import nvcc
from tilelang.utils.target import determine_target, target_is_cuda, target_is_hopper


def keys_a_turn(dim):
    """The fastest on an H200 (benchmarks/RESULTS.md), with wgmma and with mma.sync.

    With mma.sync, 128 keys and 64 columns allow one block per SM, not two; other GPUs have less shared memory.
    """
    target = determine_target(return_object=True)
    if target_is_hopper(target):
        return 128 if dim <= 128 else 64
    has_room = target_is_cuda(target) and nvcc.get_target_compute_version(target) == "8.0"
    return 128 if has_room and 64 < dim <= 128 else 64


@tilelang.jit(out_idx=[-2, -1])
def attention_forward(
    batch,
    heads,
    seq_len,
    dim,
    is_causal=False,
    slack=8,  # log2 units that a row's scaled maximum may exceed its reference by: bounds the weights
    block_M=128,
    block_N=None,  # keys per iteration
    num_stages=2,
    threads=256,
    dtype="float16",
):
    """Output = softmax(Q @ K^T / sqrt(dim)) @ V, and Lse = log2 of the sum of exp of each row of Q @ K^T / sqrt(dim).

    With is_causal, query i sees the keys 0..i only. Q, K and V must be finite.

    A weight is exp2(score * scale - r * scale); r is a row's reference, which its maximum replaces
    once it exceeds r by more than slack / scale. Where score * scale is less than 2**24 in magnitude, rounding
    r * scale adds at most 1/2 to the exponent (one FMA, the compilers' default), and weights are at most
    2**(slack + 1/2) up to rounding. This bounds overflow, not the error; larger scores may give NaN.
    """
    if block_N is None:
        block_N = keys_a_turn(dim)
    assert slack < 16, "weights, of some 2**(slack + 1/2) at most, are rounded to float16"
    scale = (1.0 / dim) ** 0.5 * 1.44269504  # log2(e) / sqrt(dim): exp2 replaces exp
    shape = (batch, seq_len, heads, dim)
    accum_dtype = "float32"

    @T.prim_func
    def attention_forward_kernel(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Output: T.Tensor(shape, dtype),
        Lse: T.Tensor((batch, heads, seq_len), accum_dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_M, dim), dtype)
            K_shared = T.alloc_shared((block_N, dim), dtype)
            V_shared = T.alloc_shared((block_N, dim), dtype)
            acc_s = T.alloc_fragment((block_M, block_N), accum_dtype)
            acc_s_cast = T.alloc_fragment((block_M, block_N), dtype)
            acc_o = T.alloc_fragment((block_M, dim), accum_dtype)
            scores_max = T.alloc_fragment((block_M,), accum_dtype)
            scores_max_prev = T.alloc_fragment((block_M,), accum_dtype)
            scores_scale = T.alloc_fragment((block_M,), accum_dtype)
            scores_sum = T.alloc_fragment((block_M,), accum_dtype)
            logsum = T.alloc_fragment((block_M,), accum_dtype)

            T.copy(Q[bz, bx * block_M : (bx + 1) * block_M, by, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))

            # A causal block stops at its last query: all later keys are masked.
            last = T.min(seq_len, (bx + 1) * block_M) if is_causal else seq_len

            for k in T.Pipelined(T.ceildiv(last, block_N), num_stages=num_stages):
                T.copy(K[bz, k * block_N : (k + 1) * block_N, by, :], K_shared)
                T.copy(V[bz, k * block_N : (k + 1) * block_N, by, :], V_shared)

                # Key 0 is masked for no query, so each row's maximum is finite from iteration 0 on.
                if is_causal:
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(bx * block_M + i >= k * block_N + j, 0, -T.infinity(accum_dtype))
                else:
                    for i, j in T.Parallel(block_M, block_N):
                        acc_s[i, j] = T.if_then_else(k * block_N + j < seq_len, 0, -T.infinity(accum_dtype))
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)

                # Online softmax: each iteration rescales by exp2((scores_max_prev - scores_max) * scale).
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

            # From here on scores_sum is logsum's reciprocal: a division per row that a thread holds, not per element.
            for i in T.Parallel(block_M):
                scores_sum[i] = 1 / logsum[i]
                logsum[i] = T.log2(logsum[i]) + scores_max[i] * scale
            for i, j in T.Parallel(block_M, dim):
                acc_o[i, j] *= scores_sum[i]
            T.copy(acc_o, Output[bz, bx * block_M : (bx + 1) * block_M, by, :])
            T.copy(logsum, Lse[bz, by, bx * block_M : (bx + 1) * block_M])

    return attention_forward_kernel


@tilelang.jit(out_idx=[-3, -2, -1])
def attention_backward(
    batch,
    heads,
    seq_len,
    dim,
    is_causal=False,
    block_M=None,
    block_N=64,  # queries per iteration
    num_stages=2,
    threads=None,
    dtype="float16",
):
    """dQ, dK and dV of Output = softmax(Q @ K^T / sqrt(dim)) @ V, given dO, the gradient of Output.

    With S = Q @ K^T / sqrt(dim) and P = exp2(S * log2(e) - Lse): dV = P^T @ dO, dS = P * (dO @ V^T - rowsum(dO *
    Output)), dQ = dS @ K / sqrt(dim) and dK = dS^T @ Q / sqrt(dim). Output and Lse must be those of attention_forward
    for the same arguments. Q, K, V and dO must be finite, and S less than 2**23 in magnitude, where float32 no longer
    holds halves; P and dS are rounded to the type of the tensors, whose range dS must not exceed.
    """
    # Defaults: the fastest on an H200 (benchmarks/RESULTS.md).
    if block_M is None:
        block_M = 128 if dim >= 128 else 64  # keys per block
    if threads is None:
        threads = 2 * block_M
    softmax_scale = (1.0 / dim) ** 0.5
    scale = softmax_scale * 1.44269504  # log2(e) / sqrt(dim): exp2 replaces exp
    shape = (batch, seq_len, heads, dim)
    rows = (batch, heads, seq_len)
    accum_dtype = "float32"
    block_P = 64  # queries per block of the kernels before and after

    @T.prim_func
    def attention_backward_kernel(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        Output: T.Tensor(shape, dtype),
        Lse: T.Tensor(rows, accum_dtype),  # log2, not ln, of the sum of exp of a row of S
        dO: T.Tensor(shape, dtype),
        dQ: T.Tensor(shape, dtype),
        dK: T.Tensor(shape, dtype),
        dV: T.Tensor(shape, dtype),
    ):
        Delta = T.alloc_global(rows, accum_dtype)  # per row, the sum of Output * dO
        dQ_sum = T.alloc_global(shape, accum_dtype)  # blocks of keys accumulate into it

        # prepare
        with T.Kernel(T.ceildiv(seq_len, block_P), heads, batch, threads=128) as (bx, by, bz):
            o = T.alloc_fragment((block_P, dim), accum_dtype)
            dO_local = T.alloc_fragment((block_P, dim), accum_dtype)
            delta = T.alloc_fragment((block_P,), accum_dtype)

            T.copy(Output[bz, bx * block_P : (bx + 1) * block_P, by, :], o)
            T.copy(dO[bz, bx * block_P : (bx + 1) * block_P, by, :], dO_local)
            for i, j in T.Parallel(block_P, dim):
                dO_local[i, j] *= o[i, j]
            T.reduce_sum(dO_local, delta, dim=1)
            T.copy(delta, Delta[bz, by, bx * block_P : (bx + 1) * block_P])
            T.clear(o)  # zeros, to which blocks of keys add
            T.copy(o, dQ_sum[bz, bx * block_P : (bx + 1) * block_P, by, :])

        # gradients
        with T.Kernel(T.ceildiv(seq_len, block_M), heads, batch, threads=threads) as (bx, by, bz):
            K_shared = T.alloc_shared((block_M, dim), dtype)
            V_shared = T.alloc_shared((block_M, dim), dtype)
            Q_shared = T.alloc_shared((block_N, dim), dtype)
            dO_shared = T.alloc_shared((block_N, dim), dtype)
            dsT_shared = T.alloc_shared((block_M, block_N), dtype)
            lse = T.alloc_shared((block_N,), accum_dtype)
            delta = T.alloc_shared((block_N,), accum_dtype)
            # Keys are rows here: pT and dsT are the transposed matrices of probabilities and of the scores' gradients.
            pT = T.alloc_fragment((block_M, block_N), accum_dtype)
            pT_cast = T.alloc_fragment((block_M, block_N), dtype)
            dsT = T.alloc_fragment((block_M, block_N), accum_dtype)
            dsT_cast = T.alloc_fragment((block_M, block_N), dtype)
            dv = T.alloc_fragment((block_M, dim), accum_dtype)
            dk = T.alloc_fragment((block_M, dim), accum_dtype)
            dq = T.alloc_fragment((block_N, dim), accum_dtype)

            T.copy(K[bz, bx * block_M : (bx + 1) * block_M, by, :], K_shared)
            T.copy(V[bz, bx * block_M : (bx + 1) * block_M, by, :], V_shared)
            T.clear(dv)
            T.clear(dk)

            # A causal block starts with the first query that sees its first key.
            first = bx * block_M // block_N if is_causal else 0

            for k in T.Pipelined(first, T.ceildiv(seq_len, block_N), num_stages=num_stages):
                T.copy(Q[bz, k * block_N : (k + 1) * block_N, by, :], Q_shared)
                T.copy(dO[bz, k * block_N : (k + 1) * block_N, by, :], dO_shared)
                T.copy(Lse[bz, by, k * block_N : (k + 1) * block_N], lse)
                T.copy(Delta[bz, by, k * block_N : (k + 1) * block_N], delta)

                # Queries past the end add zeros: their Q and dO are zeros.
                T.gemm(K_shared, Q_shared, pT, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
                T.gemm(V_shared, dO_shared, dsT, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
                if is_causal:
                    for i, j in T.Parallel(block_M, block_N):
                        visible = bx * block_M + i <= k * block_N + j
                        pT[i, j] = T.if_then_else(visible, T.exp2(pT[i, j] * scale - lse[j]), 0)
                else:
                    for i, j in T.Parallel(block_M, block_N):
                        visible = bx * block_M + i < seq_len
                        pT[i, j] = T.if_then_else(visible, T.exp2(pT[i, j] * scale - lse[j]), 0)
                T.copy(pT, pT_cast)
                T.gemm(pT_cast, dO_shared, dv, policy=T.GemmWarpPolicy.FullRow)

                for i, j in T.Parallel(block_M, block_N):
                    dsT_cast[i, j] = pT[i, j] * (dsT[i, j] - delta[j]) * softmax_scale
                T.gemm(dsT_cast, Q_shared, dk, policy=T.GemmWarpPolicy.FullRow)

                T.copy(dsT_cast, dsT_shared)
                T.gemm(dsT_shared, K_shared, dq, transpose_A=True, clear_accum=True)
                T.atomic_add(dQ_sum[bz, k * block_N : (k + 1) * block_N, by, :], dq)

            T.copy(dk, dK[bz, bx * block_M : (bx + 1) * block_M, by, :])
            T.copy(dv, dV[bz, bx * block_M : (bx + 1) * block_M, by, :])

        # round_dQ
        with T.Kernel(T.ceildiv(seq_len, block_P), heads, batch, threads=128) as (bx, by, bz):
            dq = T.alloc_fragment((block_P, dim), accum_dtype)
            T.copy(dQ_sum[bz, bx * block_P : (bx + 1) * block_P, by, :], dq)
            T.copy(dq, dQ[bz, bx * block_P : (bx + 1) * block_P, by, :])

    return attention_backward_kernel
