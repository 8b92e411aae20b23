"""nvcc's PTX of products of 4-bit integers, on the PTX machine, against NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tests.host.test_packed import PRODUCT, numbers, packed


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_products(dtype: str, tmp_path: Path) -> None:
    m, n, k = 50, 70, 94
    statements = PRODUCT.format(
        a=(32, 64),
        b=(48, 64),
        a_place="by * 32, ko * 64",
        b_place="bx * 48, ko * 64",
        dtype=dtype,
        result="int32",
        ta=False,
        tb=True,
    )
    params = f'A: T.Tensor((M, K), {dtype!r}), B: T.Tensor((N, K), {dtype!r}), C: T.Tensor((M, N), "int32")'
    grid = "T.ceildiv(N, 48), T.ceildiv(M, 32)"
    kernel = load_body(
        tmp_path, statements, params, grid=grid, blocks="(bx, by)", arguments="M, N, K", device="ptx", check=False
    )
    a, b = numbers(dtype, m, k), numbers(dtype, n, k)
    np.testing.assert_array_equal(kernel(packed(a, dtype), packed(b, dtype)), a @ b.T)
