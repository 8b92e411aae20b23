"""Sparse attention whose rows a producer gathers for two warpgroups that alternate, on the CPU engine."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.examples import assert_clean
from tests.host.kernels import load_body, source_of_body

DIM, TAIL, HEADS = 128, 64, 64
PARAMS = (
    'Q: T.Tensor((queries, 64, 192), "bfloat16"), KV: T.Tensor((tokens, {pitch}), "bfloat16"), '
    'Indices: T.Tensor((queries, top), "int32"), Out: T.Tensor((queries, 64, 128), "bfloat16")'
)
BODY = """
    Q_shared = T.alloc_shared((64, 128), "bfloat16")
    Q_tail_shared = T.alloc_shared((64, 64), "bfloat16")
    KV_shared = T.alloc_shared((64, 128), "bfloat16")
    K_tail_shared = T.alloc_shared((64, 64), "bfloat16")
    S_shared = T.alloc_shared((64, 64), "bfloat16")
    mask = T.alloc_fragment((64,), "bool")
    S = T.alloc_fragment((64, 64), "float32")
    O = T.alloc_fragment((64, 128), "float32")
    most = T.alloc_fragment((64,), "float32")
    before = T.alloc_fragment((64,), "float32")
    factor = T.alloc_fragment((64,), "float32")
    part = T.alloc_fragment((64,), "float32")
    total = T.alloc_fragment((64,), "float32")
    T.clear(O)
    T.clear(total)
    T.fill(most, -(2.0**30))
    T.copy(Q[bx, :, :128], Q_shared)
    T.copy(Q[bx, :, 128:], Q_tail_shared)
    for k in T.Pipelined(T.ceildiv(top, 64), num_stages=2):
        for j in T.Parallel(64):
            mask[j] = {taken}
        for j, d in T.Parallel(64, 128):
            KV_shared[j, d] = {first}
        for j, d in T.Parallel(64, 64):
            K_tail_shared[j, d] = {second}
        for i, j in T.Parallel(64, 64):
            S[i, j] = T.if_then_else(mask[j], 0, -T.infinity("float32"))
        T.gemm(Q_shared, KV_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
        T.gemm(Q_tail_shared, K_tail_shared, S, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
        T.copy(most, before)
        T.reduce_max(S, most, dim=1, clear=False)
        for i in T.Parallel(64):
            factor[i] = T.exp2(before[i] - most[i])
        for i, j in T.Parallel(64, 64):
            S[i, j] = T.exp2(S[i, j] - most[i])
        T.reduce_sum(S, part, dim=1)
        for i in T.Parallel(64):
            total[i] = total[i] * factor[i] + part[i]
        for i, j in T.Parallel(64, 128):
            O[i, j] = O[i, j] * factor[i]
        T.copy(S, S_shared)
        T.gemm(S_shared, KV_shared, O, policy=T.GemmWarpPolicy.FullRow)
    for i, j in T.Parallel(64, 128):
        O[i, j] = T.if_then_else(total[i] > 0, O[i, j] / total[i], 0)
    T.copy(O, Out[bx, :, :])
"""
INDEX = "Indices[bx, k * 64 + j]"
ROWS = {"first": f"KV[{INDEX}, d]", "second": f"KV[{INDEX}, 128 + d]", "taken": f"({INDEX} >= 0) & (k * 64 + j < top)"}
CHOSEN = ROWS | {
    "first": f"T.if_then_else({INDEX} >= 0, KV[{INDEX}, d], 0)",
    "second": f"T.if_then_else({INDEX} >= 0, KV[{INDEX}, 128 + d], 0)",
}
FORM = {"grid": "queries", "arguments": "queries, tokens, top", "threads": 256, "target": "cuda:sm_90a"}
GATHER = "tl::gather_slab("


def expected(q: np.ndarray, kv: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Softmax in base 2 over the rows that a query's indices name; a row outside of the tensor is zero."""
    found = np.zeros((len(q), HEADS, DIM))
    for number, own in enumerate(indices):
        inside = (own >= 0) & (own < len(kv))
        rows = np.where(inside[:, None], kv[np.clip(own, 0, len(kv) - 1)], 0).astype(np.float64)[own >= 0]
        if not len(rows):
            continue
        scores = q[number].astype(np.float64) @ rows.T
        weights = np.exp2(scores - scores.max(axis=1, keepdims=True))
        found[number] = weights / weights.sum(axis=1, keepdims=True) @ rows[:, :DIM]
    return found


def rounded(values: np.ndarray) -> np.ndarray:
    """Float32 values that bfloat16 has."""
    return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def bfloat16(values: np.ndarray) -> np.ndarray:
    import ml_dtypes

    return values.astype(ml_dtypes.bfloat16)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("form", [ROWS, CHOSEN], ids=["rows", "chosen"])
def test_a_producer_gathers_rows_for_warpgroups_that_alternate(tmp_path: Path, form: dict[str, str]) -> None:
    """Any number of iterations, rows that no index names, indices past the end, and queries without any row."""
    kernel = load_body(tmp_path, BODY.format(**form), PARAMS.format(pitch=192), **FORM)
    assert kernel.source.count(GATHER) >= 3 and "start_S" in kernel.source
    random = np.random.default_rng(5)
    for queries, tokens, top in ((2, 300, 192), (1, 70, 70), (3, 33, 64), (1, 5, 257)):
        q = rounded(random.normal(size=(queries, HEADS, 192)) / 4)
        kv = rounded(random.normal(size=(tokens, 192)))
        indices = random.integers(-3, tokens + 3, (queries, top)).astype(np.int32)
        indices[indices < 0] = -1
        indices[-1, :64] = -1  # a whole iteration without a row
        found = kernel(bfloat16(q), bfloat16(kv), indices)
        error = np.abs(found.astype(np.float64) - expected(q, kv, indices)).max()
        assert error < 3e-2, (queries, tokens, top)
        assert_clean(kernel)


@pytest.mark.nightly
def test_columns_outside_of_the_tensor_are_zero(tmp_path: Path) -> None:
    """A scalar argument decides in which column rows begin: before the tensor, at its end, or at the least int."""
    form = ROWS | {part: f"KV[{INDEX}, c * 64 + d]" for part in ("first", "second")}
    params = PARAMS.format(pitch=192).replace("Out:", "c: T.int32, Out:")
    kernel = load_body(tmp_path, BODY.format(**form), params, **FORM)
    assert kernel.source.count(GATHER) >= 3
    random = np.random.default_rng(6)
    q = rounded(random.normal(size=(1, HEADS, 192)) / 4)
    kv = rounded(random.normal(size=(40, 192)))
    indices = random.integers(0, 40, (1, 70)).astype(np.int32)
    indices[0, 0] = 0
    for c in (-1, 1, 2, -(2**25)):
        columns = c * 64 + np.concatenate((np.arange(DIM), np.arange(TAIL)))
        inside = (columns >= 0) & (columns < 192)
        seen = np.where(inside, kv[:, np.where(inside, columns, 0)], 0)
        found = kernel(bfloat16(q), bfloat16(kv), indices, c).astype(np.float64)
        assert np.abs(found - expected(q, seen, indices)).max() < 3e-2, c
        assert_clean(kernel)


@pytest.mark.parametrize(
    ("form", "given"),
    [
        (ROWS, {"threads": 128}),  # one warpgroup
        (ROWS, {"pitch": 196}),  # rows at odd multiples of 8 bytes
        (ROWS | {"first": "KV[k * 64 + j, d]"}, {}),  # one load of the two is no gather
    ],
    ids=["one-warpgroup", "rows-of-8-bytes", "mixed"],
)
def test_other_loops_gather_by_all_threads(tmp_path: Path, form: dict[str, str], given: dict[str, int]) -> None:
    params = PARAMS.format(pitch=given.get("pitch", 192))
    source = source_of_body(tmp_path, BODY.format(**form), params, **FORM | {"threads": given.get("threads", 256)})
    assert GATHER not in source
