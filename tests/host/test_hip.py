"""The HIP text of the examples on the CPU engine, in waves of 64, against float64, ragged sizes included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import Kernel

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def load(name: str, target: str = "hip:gfx942", **bindings: object) -> Kernel:
    options = {"schedules": ("round-robin", "shuffle")}
    return tile2cu.load(EXAMPLES / name, target=target, device="cpu", check=True, options=options, **bindings)


@pytest.mark.parametrize("n", [1, 1023, 4099])
def test_vector_add(n: int) -> None:
    a, b = (np.random.default_rng(seed).standard_normal(n).astype(np.float32) for seed in (n, n + 1))
    np.testing.assert_array_equal(load("vector_add.py")(a, b), a + b)


@pytest.mark.parametrize(("rows", "columns", "threads"), [(7, 1000, 128), (2, 4096, 256), (1, 64, 64)])
def test_row_softmax(rows: int, columns: int, threads: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, columns)).astype(np.float32)
    y = load("row_softmax.py", N=columns, block_M=1, threads=threads)(x)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=2e-6)
