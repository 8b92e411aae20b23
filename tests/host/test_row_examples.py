"""The examples that work on rows, on the CPU engine against float64, in widths that emitted/ does not have."""

import numpy as np
import pytest

import inputs
import references
from tests.host.example_calls import assert_close
from tests.host.examples import assert_clean, halves, load, run


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("dim", "block"), [(32, 4), (96, 1), (4128, 2)])
def test_rmsnorm_and_silu_of_any_multiple_of_32(dim: int, block: int) -> None:
    kernel = load("rmsnorm_silu.py", dim=dim, block_M=block)
    for rows in (1, 7):
        data = halves(inputs.normals(random(rows), [(rows, dim), (dim,)]))
        assert_close(run(kernel, data)[0], references.rmsnorm_silu(data, {}), 2e-3)
        assert_clean(kernel)


@pytest.mark.nightly
@pytest.mark.parametrize("dim", [200, 1000])
def test_rmsnorm_of_rows_that_leave_lanes_of_a_warp_idle(dim: int) -> None:
    """Two rows a warp, or rows of several packets a lane; the last block has some of its rows."""
    kernel = load("rmsnorm.py", dim=dim)
    for rows in (1, 8, 13):
        data = halves(inputs.normals(random(rows), [(rows, dim), (dim,)]))
        assert_close(run(kernel, data)[0], references.rmsnorm(data, {}), 2e-3)
        assert_clean(kernel)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dim", [100, 8192])
def test_layernorm_of_rows_far_from_zero(dim: int) -> None:
    """Sums of squares would leave nothing of a variance of 1 beside a mean of 1000."""
    kernel = load("layernorm.py", dim=dim, block_M=2, dtype="float32")
    x, w, b = halves(inputs.normals(random(dim), [(5, dim), (dim,), (dim,)]), np.float32)
    x = (x + 1000).astype(np.float32).astype(np.float64)
    for found, expected in zip(run(kernel, [x, w, b], "float32"), references.layernorm([x, w, b], {}), strict=True):
        assert_close(found, expected, 1e-3)
    assert_clean(kernel)


def test_cross_entropy_of_large_logits() -> None:
    kernel = load("cross_entropy.py", block_N=512)
    logits, labels = inputs.logits(random(3), [(6, 1100), (6,)])
    logits, labels = halves([30 * logits])[0], np.array([0, 1099, 5, -1, 511, 512.0])
    found = run(kernel, [logits, labels], ["float16", "int32"])
    for array, expected in zip(found, references.cross_entropy([logits, labels], {}), strict=True):
        assert_close(array, expected, 2e-3)
    assert kernel.report is not None and not kernel.report.findings


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_linear_attention(target: str) -> None:
    kernel = load("linear_attention.py", dim=64, target=target)
    data = halves(inputs.normals(random(4), [(1, 150, 2, 64), (1, 150, 2, 64), (1, 150, 2, 136)]))
    for found, expected in zip(run(kernel, data), references.linear_attention(data, {}), strict=True):
        assert_close(found, expected, 2e-3)
    assert_clean(kernel)
