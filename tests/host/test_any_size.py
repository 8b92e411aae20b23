"""A Hopper kernel takes any size: what TMA cannot take goes to the same kernel without TMA, built when it is needed."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import LaunchError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def operands(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((m, k)).astype(np.float16), random.standard_normal((k, n)).astype(np.float16)
    return a, b, np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0)


def test_a_pitch_that_tma_cannot_take() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", device="cpu")
    for m, n, k in ((33, 64, 64), (33, 65, 64), (1, 7, 33), (33, 64, 64)):
        a, b, expected = operands(m, n, k)
        np.testing.assert_allclose(kernel(a, b).astype(np.float32), expected, atol=2e-2, rtol=2e-2)
    assert kernel.manifest.target == "cuda:sm_90a"


def test_outputs_that_the_caller_passes_and_checks() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", check=True)
    a, b, expected = operands(20, 65, 40)
    c = np.empty((20, 65), np.float16)
    assert kernel(a, b, c) is None
    np.testing.assert_allclose(c.astype(np.float32), expected, atol=2e-2, rtol=2e-2)
    assert kernel.report is not None and not kernel.report.findings


def test_a_kernel_that_has_no_other_form_states_why() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_cluster.py", target="cuda:sm_90a", device="cpu")
    a, b, _ = operands(20, 65, 40)
    with pytest.raises(LaunchError, match="TL_NOT_SUPPORTED") as caught:
        kernel(a, b)
    assert isinstance(caught.value.__cause__, tile2cu.Error)


def test_tiles_by_the_sizes_of_each_call() -> None:
    kernel = tile2cu.load(EXAMPLES / "gemm_relu.py", target="cuda:sm_90a", device="cpu", tiles="auto")
    for m, n, k in ((1, 256, 256), (1, 256, 256), (300, 256, 256), (16, 65, 64)):
        a, b, expected = operands(m, n, k)
        np.testing.assert_allclose(kernel(a, b).astype(np.float32), expected, atol=5e-2, rtol=2e-2)
    assert set(kernel.choices) == {(1, 256, 256), (300, 256, 256), (16, 65, 64)}
    assert len(kernel.kernels) <= 4
    assert kernel.kernel_for(M=1, N=256, K=256) is kernel.kernel_for(M=1, N=256, K=256)
