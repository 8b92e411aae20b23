"""What kernels compute, in NumPy and float64. Each function gets the inputs and the manifest's bindings."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

Array = np.ndarray
Arrays = list[np.ndarray]
Bindings = Mapping[str, object]


def number(bindings: Bindings, name: str, default: int = 0) -> int:
    """A binding that is an integer or a flag."""
    value = bindings.get(name, default)
    assert isinstance(value, int)
    return value


def vector_add(inputs: Arrays, bindings: Bindings) -> Array:
    return inputs[0] + inputs[1]


def softmax(x: Array) -> Array:
    """Over the last axis; rows that are minus infinity throughout give zeros."""
    largest = x.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(x - np.where(np.isfinite(largest), largest, 0))
    return weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)


def row_softmax(inputs: Arrays, bindings: Bindings) -> Array:
    return softmax(inputs[0])


def gemm_relu(inputs: Arrays, bindings: Bindings) -> Array:
    return np.maximum(inputs[0] @ inputs[1], 0)


def gemm(inputs: Arrays, bindings: Bindings) -> Array:
    """Of A and B, each stored as it is or transposed, and of a bias if there is one."""
    a, b = (x.T if number(bindings, f"transpose_{n}") else x for x, n in zip(inputs[:2], "AB", strict=True))
    c = a @ b + (inputs[2] if len(inputs) > 2 else 0)
    activation = bindings.get("activation", "")
    return np.maximum(c, 0) if activation == "relu" else gelu(c) if activation == "gelu" else c


def linear(inputs: Arrays, bindings: Bindings) -> Array:
    """X @ W^T, and what is added to it if there is a third input."""
    x, w, *added = inputs
    return np.asarray(x @ w.T + (added[0] if added else 0))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def product(inputs: Arrays, bindings: Bindings) -> Array:
    return np.asarray(inputs[0] @ inputs[1])


def scaled_product(inputs: Arrays, bindings: Bindings) -> Array:
    """A @ B^T, with a scale for 1 x 128 elements of A, and for 128 x 128 of B."""
    a, b, scales_a, scales_b = inputs
    (m, k), n = a.shape, b.shape[0]
    whole_a = a * scales_a.repeat(128, axis=1)[:m, :k]
    whole_b = b * scales_b.repeat(128, axis=0).repeat(128, axis=1)[:n, :k]
    return np.asarray(whole_a @ whole_b.T)


def gemm_grouped(inputs: Arrays, bindings: Bindings) -> Array:
    rows, matrices, starts = inputs
    parts = np.split(rows, starts[1:-1].astype(int))
    return np.concatenate([part @ matrix for part, matrix in zip(parts, matrices, strict=True)])


# The numbers of e2m1, by their bits; those of nf4 are the caller's.
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FP4 = np.concatenate([FP4, -FP4])


def dequant(inputs: Arrays, bindings: Bindings) -> Array:
    """X @ W^T with weights of 4 bits; after the scales come zeros, or for "nf4" the table."""
    x, packed, scales, *more = inputs
    bits = packed.astype(int)
    nibbles = np.stack([bits & 15, bits >> 4], axis=-1).reshape(len(packed), -1)
    group = number(bindings, "group", 32)
    match bindings.get("weights", "int4"):
        case "int4":
            values = nibbles - np.repeat(more[0], group, axis=1)
        case "fp4":
            values = FP4[nibbles]
        case _:
            values = more[0][nibbles]
    return np.asarray(x @ (values * np.repeat(scales, group, axis=1)).T)


def linear_int4(inputs: Arrays, bindings: Bindings) -> Array:
    """The same with all zeros 8, and GELU if it is asked for."""
    y = dequant([*inputs, np.full_like(inputs[2], 8)], {"group": number(bindings, "group", 32)})
    return gelu(y) if number(bindings, "gelu") else y


def w2a8(inputs: Arrays, bindings: Bindings) -> Array:
    x, packed = inputs
    weights = packed.astype(int)[:, :, None] >> np.array([0, 2, 4, 6]) & 3
    return np.asarray(x @ (weights.reshape(len(packed), -1) - 1).T)


# ---- rows -----------------------------------------------------------------------------------------------------------


def layernorm(inputs: Arrays, bindings: Bindings) -> Arrays:
    """The result, the means, and one over the roots of the variances."""
    x, w, b = inputs
    mean, rstd = x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + 1e-5)
    return [(x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd]


def rmsnorm(inputs: Arrays, bindings: Bindings) -> Array:
    x, w = inputs
    eps = bindings.get("eps", 1e-5)
    assert isinstance(eps, float)
    return np.asarray(x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + eps) * w)


def rope(inputs: Arrays, bindings: Bindings) -> Arrays:
    """Q and K turned by their positions' angles, and V; of (batch, sequence, 3, heads, dim)."""
    qkv, cos, sin = inputs
    low, high = np.split(qkv[:, :, :2], 2, axis=-1)
    c, s = (x[None, :, None, None, :] for x in (cos, sin))
    turned = np.concatenate([low * c - high * s, high * c + low * s], axis=-1)
    return [turned[:, :, 0], turned[:, :, 1], qkv[:, :, 2]]


def rmsnorm_silu(inputs: Arrays, bindings: Bindings) -> Array:
    y = rmsnorm(inputs, bindings)
    return y / (1 + np.exp(-y))


def reduce_rows(inputs: Arrays, bindings: Bindings) -> Array:
    return np.asarray(inputs[0].sum(axis=1))


def cross_entropy(inputs: Arrays, bindings: Bindings) -> Arrays:
    """The losses and their gradients; a row with a negative label has none."""
    x, labels = inputs
    rows, seen = np.arange(len(x)), labels >= 0
    columns = np.maximum(labels, 0).astype(int)
    gradient = softmax(x)
    loss = np.where(seen, -np.log(gradient[rows, columns]), 0)
    gradient[rows, columns] -= 1
    return [loss, gradient * seen[:, None]]


# ---- attention ------------------------------------------------------------------------------------------------------


def probabilities(q: Array, k: Array, *, causal: bool = False, window: int = 0) -> Array:
    """(heads, queries, keys) of (queries, heads, dim) and (keys, kv_heads, dim); the last query sees the last key."""
    k = np.repeat(k, q.shape[1] // max(1, k.shape[1]), axis=1)
    scores = np.einsum("shd,thd->hst", q, k) / np.sqrt(q.shape[-1])
    last_key = np.arange(len(q))[:, None] + len(k) - len(q)
    keys = np.arange(len(k))[None, :]
    if causal:
        scores = np.where(keys <= last_key, scores, -np.inf)
    if window:
        scores = np.where(keys > last_key - window, scores, -np.inf)
    return softmax(scores)


def attend(q: Array, k: Array, v: Array, *, causal: bool = False, window: int = 0) -> Array:
    """Attention of one sequence, (queries, heads, dim)."""
    v = np.repeat(v, q.shape[1] // max(1, v.shape[1]), axis=1)
    return np.einsum("hst,thd->shd", probabilities(q, k, causal=causal, window=window), v)


def attention(inputs: Arrays, bindings: Bindings) -> Array:
    """Shapes: (batch, sequence, heads, dim), all three inputs and the output."""
    causal, window = bool(number(bindings, "is_causal")), number(bindings, "window")
    each = [attend(*tensors, causal=causal, window=window) for tensors in zip(*inputs, strict=True)]
    return np.stack(each) if each else np.zeros(inputs[0].shape)


def attention_block_sparse(inputs: Arrays, bindings: Bindings) -> Array:
    """Shapes: (batch, heads, sequence, dim), and a flag for each block of queries and of keys of each head."""
    q, k, v, kept = inputs
    sides = [number(bindings, name, 64) for name in ("block_M", "block_N")]
    seen = kept.repeat(sides[0], axis=2).repeat(sides[1], axis=3)[..., : q.shape[2], : q.shape[2]] > 0
    if number(bindings, "is_causal"):
        seen = np.tril(seen)
    scores = np.einsum("bhsd,bhtd->bhst", q, k) / np.sqrt(q.shape[-1])
    return np.einsum("bhst,bhtd->bhsd", softmax(np.where(seen, scores, -np.inf)), v)


def attention_varlen(inputs: Arrays, bindings: Bindings) -> Array:
    q, k, v, starts, starts_k = inputs
    parts = [np.split(x, s[1:-1].astype(int)) for x, s in ((q, starts), (k, starts_k), (v, starts_k))]
    causal = bool(number(bindings, "is_causal"))
    return np.concatenate([attend(*tensors, causal=causal) for tensors in zip(*parts, strict=True)])


def attention_forward(inputs: Arrays, bindings: Bindings) -> Arrays:
    """The output, and the logarithm (base 2) of the sum of exponentials of each row's scores."""
    q, k, _ = inputs
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(q.shape[-1])
    if number(bindings, "is_causal"):
        scores = np.where(np.tril(np.ones(scores.shape[-2:], dtype=bool)), scores, -np.inf)
    return [attention(inputs, bindings), np.log2(np.exp(scores).sum(axis=-1))]


def attention_backward(inputs: Arrays, bindings: Bindings) -> Arrays:
    """dQ, dK and dV of Q, K, V, the output, the logarithms and the gradient of the output."""
    q, k, v, _, _, do = inputs
    causal, scale = bool(number(bindings, "is_causal")), 1 / np.sqrt(q.shape[-1])
    p = np.stack([probabilities(*each, causal=causal) for each in zip(q, k, strict=True)])
    dp = np.einsum("bshd,bthd->bhst", do, v)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) * scale
    dq, dk = np.einsum("bhst,bthd->bshd", ds, k), np.einsum("bhst,bshd->bthd", ds, q)
    return [dq, dk, np.einsum("bhst,bshd->bthd", p, do)]


def flash_decoding(inputs: Arrays, bindings: Bindings) -> Array:
    q, k, v, lengths = inputs
    batch, kv_heads, group, dim = q.shape
    each = [
        attend(q[b].reshape(1, kv_heads * group, dim), k[b, : int(n)], v[b, : int(n)]) for b, n in enumerate(lengths)
    ]
    return np.stack(each).reshape(q.shape)


def linear_attention(inputs: Arrays, bindings: Bindings) -> Arrays:
    """The output, and the state after the last token."""
    q, k, v = inputs
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(q.shape[-1])
    seen = np.tril(np.ones(scores.shape[-2:]))
    return [np.einsum("bhst,bthv->bshv", scores * seen, v), np.einsum("bthd,bthv->bhdv", k, v)]


def chunk_state(inputs: Arrays, bindings: Bindings) -> Array:
    """What each chunk's tokens add to the state, decayed to the chunk's end; tokens past the last one are zero."""
    b, x, dt, decay = inputs
    chunks, chunk_size = dt.shape[2:]
    scale = dt * np.exp(decay[..., -1:] - decay)
    b, x = (by_chunk(tokens, chunks, chunk_size) for tokens in (b, x))
    return np.einsum("bctn,bcthp,bhct->bchpn", b[:, :, :, 0], x, scale)


def chunk_scan(inputs: Arrays, bindings: Bindings) -> Array:
    cb, x, dt, decay, c, states, skip = inputs
    chunks, chunk_size = dt.shape[2:]
    tokens, reads = (by_chunk(each, chunks, chunk_size) for each in (x, c))
    seen = np.tril(np.ones((chunk_size, chunk_size)))
    falls = np.exp(np.minimum(decay[..., :, None] - decay[..., None, :], 0)) * seen
    own = np.einsum("bcmt,bhcmt,bhct,bcthp->bcmhp", cb[:, :, 0], falls, dt, tokens, optimize=True)
    before = np.einsum("bcmn,bchpn,bhcm->bcmhp", reads[:, :, :, 0], states, np.exp(decay), optimize=True)
    return (own + before + tokens * skip[:, None]).reshape(x.shape[0], -1, *x.shape[2:])[:, : x.shape[1]]


def by_chunk(tokens: Array, chunks: int, chunk_size: int) -> Array:
    """(batch, tokens, ...) as (batch, chunks, chunk_size, ...), zeros after the last token."""
    missing = chunks * chunk_size - tokens.shape[1]
    padded = np.pad(tokens, [(0, 0), (0, missing)] + [(0, 0)] * (tokens.ndim - 2))
    return padded.reshape(tokens.shape[0], chunks, chunk_size, *tokens.shape[2:])


def mla_decode(inputs: Arrays, bindings: Bindings) -> Array:
    """Of a contiguous cache, or of pages that a table lists."""
    q, q_pe, kv, k_pe, *table, lengths = inputs
    out = np.zeros(q.shape)
    for b, length in enumerate(lengths):
        rows = [x[table[0][b].astype(int)].reshape(-1, x.shape[-1]) if table else x[b] for x in (kv, k_pe)]
        keys, keys_pe = (x[: int(length)] for x in rows)
        scores = (q[b] @ keys.T + q_pe[b] @ keys_pe.T) / np.sqrt(q.shape[-1] + q_pe.shape[-1])
        out[b] = softmax(scores) @ keys
    return out
