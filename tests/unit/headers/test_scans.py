"""tl::cumsum and tl::cummax in every direction, over fragments of several layouts and shared tiles, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine_kernels import Kernels, Written

# Each change: the scans of tests/host.
pytestmark = pytest.mark.nightly

F32, F16, I32 = np.float32, np.float16, np.int32
CASES = [
    ("line", (1000,), 0, F32, F32),
    ("odd_line", (37,), 0, F16, F16),
    ("mma_0", (64, 48), 0, F32, F32),
    ("mma_1", (64, 48), 1, F16, F32),
    ("odd_0", (21, 13), 0, I32, I32),
    ("odd_1", (21, 13), 1, I32, F32),
    ("tile_0", (20, 64), 0, F32, F32),
    ("tile_1", (64, 72), 1, F16, F16),
]


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "shape", "axis", "dtype", "result"), CASES)
def test_scans(
    kernels: Callable[[str], Kernels], name: str, shape: tuple[int, ...], axis: int, dtype: type, result: type
) -> None:
    x = np.random.default_rng(1).integers(-9, 10, shape).astype(dtype)
    padded = np.stack([x] * 5) if not name.startswith("tile") else x  # views of five tensors, of which one is read
    run = kernels("scans")(name, padded, Written(shape=(5, *shape), dtype=result), schedule="shuffle", seed=7)
    wide = x.astype(float)
    back = np.flip(wide, axis)
    expected = [
        wide.cumsum(axis),
        np.flip(back.cumsum(axis), axis),
        np.maximum.accumulate(wide, axis),
        np.flip(np.maximum.accumulate(back, axis), axis),
        wide.cumsum(axis),
    ]
    np.testing.assert_array_equal(run.written[0].astype(float), expected)


@pytest.mark.needs("g++")
def test_sums_of_halves_are_rounded_once(kernels: Callable[[str], Kernels]) -> None:
    x = np.random.default_rng(2).uniform(0, 1, (64, 72)).astype(F16)
    run = kernels("scans")("tile_1", x, Written(shape=(5, 64, 72), dtype=F16))
    exact = x.astype(float).cumsum(1)
    spacing = np.spacing(exact.astype(F16)).astype(float)
    assert (abs(run.written[0][0].astype(float) - exact) <= 0.51 * spacing).all()
