"""Statements in front of the first products of two warpgroups that alternate, on the CPU engine, against NumPy.

One warpgroup runs them before it receives the values of the other's turn.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.host.examples import assert_clean
from tests.host.kernels import load_body

HEAD = """
@T.macro
def reset(w):
    T.clear(w)
"""
PARAMS = (
    'Q: T.Tensor((64, 128), "float16"), Z: T.Tensor((turns * 64, 128), "float16"), '
    'W: T.Tensor((turns * 64,), "float32"), Out: T.Tensor((64, 128), "float32")'
)
BODY = """
    Q_shared = T.alloc_shared((64, 128), "float16")
    KV_shared = T.alloc_shared((64, 128), "float16")
    S_shared = T.alloc_shared((64, 64), "float16")
    S = T.alloc_fragment((64, 64), "float32")
    O = T.alloc_fragment((64, 128), "float32")
    best = T.alloc_fragment((64,), "float32")
    w = T.alloc_fragment((64,), "float32")
    g = T.alloc_fragment((64,), "float32")
    f = T.alloc_fragment((64,), "float32")
    T.copy(Q, Q_shared)
    T.fill(best, -1)
    T.clear(O)
    for k in T.Pipelined(turns, num_stages=2):
        T.copy(Z[k * 64, 0], KV_shared)
        {in_front}
        T.gemm(Q_shared, KV_shared, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullCol)
        T.reduce_max(S, best, dim=1, clear=False)
        {between}
        T.copy(S, S_shared)
        for i, j in T.Parallel(64, 128):
            O[i, j] *= {factor}[i]
        T.gemm(S_shared, KV_shared, O, policy=T.GemmWarpPolicy.FullCol)
    T.copy(O, Out)
"""
Factor = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # of best before and after a turn, and of W


def rows(*values: str) -> str:
    return "\n        ".join(("for i in T.Parallel(64):", *(f"    {value}" for value in values)))


def lines(*statements: str) -> str:
    return "\n        ".join(statements)


WEIGH = rows("w[i] = W[k * 64 + i]")
CASES: dict[str, tuple[str, str, str, Factor]] = {
    "a value of the turn before": (
        "T.copy(best, w)",
        rows("f[i] = w[i] - best[i]"),
        "f",
        lambda before, after, weights: before - after,
    ),
    "a value that both read": (WEIGH, "", "w", lambda before, after, weights: weights),
    "a value of which another is made": (
        WEIGH,
        rows("f[i] = w[i] - best[i]"),
        "f",
        lambda before, after, weights: weights - after,
    ),
    "a value that changes behind": (
        WEIGH,
        lines(rows("g[i] = w[i] - best[i]"), rows("w[i] = best[i] * 0.5"), rows("f[i] = w[i] + g[i]")),
        "f",
        lambda before, after, weights: weights - after * np.float32(0.5),
    ),
    "a value by name": (
        lines("start = k * 64", rows("w[i] = W[start + i]")),
        rows("f[i] = w[i] - best[i]"),
        "f",
        lambda before, after, weights: weights - after,
    ),
    "equal statements": (
        "reset(w)",
        lines(rows("g[i] = w[i] - best[i]"), rows("w[i] = best[i]"), "reset(w)", rows("f[i] = w[i] + g[i]")),
        "f",
        lambda before, after, weights: -after,
    ),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_their_turn(tmp_path: Path, case: str) -> None:
    """Any number of turns; small integers, so that products are exact."""
    in_front, between, factor, value = CASES[case]
    body = BODY.format(in_front=in_front, between=between, factor=factor)
    form = {"head": HEAD, "arguments": "turns", "threads": 256, "target": "cuda:sm_90a"}
    kernel = load_body(tmp_path, body, PARAMS, **form)
    assert "start_S" in kernel.source
    random = np.random.default_rng(3)
    for turns in (1, 2, 5):
        q, z = ((random.random((64 * n, 128)) < 0.03).astype(np.float16) for n in (1, turns))
        weights = random.integers(-2, 3, turns * 64).astype(np.float32)
        expected, best = np.zeros((64, 128), np.float32), np.full(64, -1, np.float32)
        for number in range(turns):
            own = slice(number * 64, number * 64 + 64)
            scores = q.astype(np.float32) @ z[own].astype(np.float32).T
            before, best = best, np.maximum(best, scores.max(axis=1))
            expected *= value(before, best, weights[own])[:, None]
            expected += scores @ z[own].astype(np.float32)
        assert np.array_equal(kernel(q, z, weights, turns=turns), expected), turns
        assert_clean(kernel)
