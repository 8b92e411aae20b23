"""The emitted text, compiled for AMD, run and checked here: ragged sizes in buffers that end where the data does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.amdgcn.build import compile_hip
from tile2cu_runtime.amdgcn import CodeObject, simulate

# Texts whose tile operations need no matrix cores, so that they compile for every target.
FLAGS = ("-O3", "-DTL_HIP_STANDALONE")


def emitted(root: Path, name: str, target: str, folder: Path) -> tuple[CodeObject, str]:
    """The code object of an emitted text, and its kernel's name in it."""
    source = root / f"emitted/cuda/sm_80/{name}.cu"
    code = CodeObject.load(compile_hip(source, target, folder, *FLAGS, f"-I{root / 'headers'}"))
    (kernel,) = code.kernel_names
    return code, kernel


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_vector_add(root: Path, target: str, tmp_path: Path) -> None:
    code, kernel = emitted(root, "vector_add", target, tmp_path)
    for n in (1, 4, 1000, 1024, 4099):
        a, b = (np.random.default_rng(seed).normal(size=n).astype(np.float32) for seed in (0, 1))
        c = np.zeros(n, np.float32)
        result = simulate(code, kernel, -(-n // 1024), 256, [a, b, c, n])
        assert result.is_clean, [str(finding) for finding in result.findings]
        np.testing.assert_array_equal(c, a + b)


def test_row_softmax(root: Path, tmp_path: Path) -> None:
    code, kernel = emitted(root, "row_softmax", "gfx942", tmp_path)
    for rows in (1, 4, 37):
        x = np.random.default_rng(rows).normal(size=(rows, 1000)).astype(np.float32)
        y = np.zeros_like(x)
        result = simulate(code, kernel, -(-rows // 4), 128, [x, y, rows])
        assert result.is_clean, [str(finding) for finding in result.findings]
        wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(y, wide / wide.sum(axis=1, keepdims=True), rtol=1e-5)
