"""The emitted HIP texts, compiled, run and checked here: ragged sizes in buffers that end where the data does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import Kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str, target: str = "gfx942", **bindings: object) -> Kernel:
    """The kernel of an example; findings of the simulator are errors."""
    return tile2cu.load(EXAMPLES / name, target=f"hip:{target}", device="sim", check=True, **bindings)


def normals(seed: int, *shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_vector_add(target: str) -> None:
    kernel = load("vector_add.py", target)
    for n in (1, 1000, 1024, 4099):
        a, b = normals(n, n), normals(n + 1, n)
        np.testing.assert_array_equal(kernel(a, b), a + b)


@pytest.mark.parametrize(("rows", "columns", "threads"), [(7, 1000, 128), (2, 4096, 256)])
def test_row_softmax(rows: int, columns: int, threads: int) -> None:
    """A row in one wave, and one over four waves."""
    x = normals(rows, rows, columns)
    y = load("row_softmax.py", N=columns, block_M=4 if threads == 128 else 1, threads=threads)(x)
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, wide / wide.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_attention(causal: bool) -> None:
    """Softmax between two products, whose registers are one another's operands; the last keys are masked."""
    kernel = load("attention.py", dim=64, is_causal=causal)
    q, k, v = (normals(seed, 1, 100, 2, 64, dtype=np.float16) for seed in range(3))
    output = kernel(q, k, v)
    wide_q, wide_k, wide_v = (each.astype(np.float64) for each in (q, k, v))
    scores = np.einsum("bshd,bthd->bhst", wide_q, wide_k) / np.sqrt(64)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(output, np.einsum("bhst,bthd->bshd", weights, wide_v), atol=2e-3)
