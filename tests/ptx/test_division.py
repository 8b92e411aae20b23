"""nvcc's PTX of `tl::divide`, on the PTX machine: the same bits as a division's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

ROWS, COLUMNS = 128, 64
STATEMENTS = """
S = T.alloc_fragment((32, 64), "float32")
R = T.alloc_fragment((32,), "float32")
T.copy(A[bx * 32, 0], S)
T.copy(D[bx * 32], R)
for i, j in T.Parallel(32, 64):
    S[i, j] /= R[i]
T.copy(S, Q[bx * 32, 0])
"""
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 3.0, -7.0, 2.0**-126, 2.0**-140, 3e38]


@pytest.mark.nightly
def test_quotients_are_rounded_as_by_a_division(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((ROWS, COLUMNS)) * 2.0 ** rng.integers(-60, 60, (ROWS, COLUMNS))
    d = rng.standard_normal(ROWS) * 2.0 ** rng.integers(-100, 100, ROWS)
    a[:, : len(SPECIAL)], d[: len(SPECIAL)] = SPECIAL, SPECIAL
    dividends, divisors = a.astype(np.float32), d.astype(np.float32)
    params = 'A: T.Tensor((M, 64), "float32"), D: T.Tensor((M,), "float32"), Q: T.Tensor((M, 64), "float32")'
    kernel = load_body(tmp_path, STATEMENTS, params, grid="T.ceildiv(M, 32)", arguments="M", device="ptx", check=False)
    found = kernel(dividends, divisors)
    with np.errstate(all="ignore"):
        expected = dividends / divisors[:, None]
    # The documented exception: dividends and quotients near the low end of float32's range.
    exact = (abs(dividends) >= 2.0**-100) & (abs(expected) >= 2.0**-126) | (dividends == 0) | np.isnan(expected)
    bits = found.view(np.uint32) == expected.view(np.uint32)
    assert (bits | np.isnan(found) & np.isnan(expected) | ~exact).all()
    np.testing.assert_allclose(found, expected, rtol=2.0**-22, atol=2.0**-148)
