"""A product through LDS and barriers, as clang-19 compiles it, is NumPy's to the last bit on small integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.build import KERNELS, compile_hip
from tile2cu_runtime.amdgcn import Result, simulate


def product(code: Path, m: int, n: int, k: int) -> tuple[Result, np.ndarray, np.ndarray]:
    """The result, C, and what C should be."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n), np.float32)
    result = simulate(code, "gemm", (n // 128, m // 128), 256, [a, b, c, m, n, k])
    return result, c, a.astype(np.float32) @ b.astype(np.float32).T


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_gemm_is_exact(target: str, tmp_path: Path) -> None:
    code = compile_hip(KERNELS / "gemm.hip", target, tmp_path)
    result, c, expected = product(code, 256, 384, 96)
    assert not result.findings, [str(each) for each in result.findings]
    np.testing.assert_array_equal(c, expected)
