"""tl::reduce_* over each kind of layout, along both dimensions, within a warp and across warps, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine_kernels import Kernels, Written

F32, F16, I32 = np.float32, np.float16, np.int32
CASES = [
    ("mma_rows", (64, 64), 1, F32, F32),
    ("mma_rows_of_2_warps", (64, 64), 1, F32, F32),
    ("mma_cols_of_2_warps", (64, 48), 0, F32, F32),
    ("mma_cols", (32, 64), 0, F32, F32),
    ("operand_rows", (64, 32), 1, F16, F32),
    ("blocked_rows", (4, 1000), 1, F32, F32),
    ("blocked_rows_of_4_warps", (3, 520), 1, F32, F32),
    ("blocked_cols_of_4_warps", (9, 64), 0, F32, F32),
    ("blocked_cols_in_warp", (40, 8), 0, F32, F32),
    ("blocked_cols_across", (40, 8), 0, F32, F32),
    ("blocked_one_dimension", (1, 1000), 1, F32, F32),
    ("integers", (6, 100), 1, I32, I32),
    ("halves", (64, 64), 1, F16, F16),
]


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "shape", "axis", "dtype", "result"), CASES)
def test_all_reductions(
    kernels: Callable[[str], Kernels], name: str, shape: tuple[int, int], axis: int, dtype: type, result: type
) -> None:
    x = np.random.default_rng(3).integers(-20, 21, shape).astype(dtype)
    x[0, 0] = -21  # so that absmax is no maximum
    count = shape[1 - axis]
    run = kernels("reductions")(name, x, Written(shape=(6, count), dtype=result), schedule="shuffle", seed=5)
    wide = x.astype(float)
    total = wide.sum(axis)
    expected = [total, wide.max(axis), wide.min(axis), abs(wide).max(axis), abs(wide).sum(axis), total + 100]
    np.testing.assert_array_equal(run.written[0].astype(float), expected)


@pytest.mark.needs("g++")
def test_max_and_min_skip_nan(kernels: Callable[[str], Kernels]) -> None:
    x = np.random.default_rng(4).standard_normal((4, 64)).astype(np.float32)
    x[:, ::3] = np.nan
    x[2] = np.nan
    run = kernels("reductions")("skips_nan", x, Written(shape=(2, 4), dtype=np.float32))
    kept = np.delete(x, 2, axis=0)
    np.testing.assert_array_equal(np.delete(run.written[0], 2, axis=1), [np.nanmax(kept, 1), np.nanmin(kept, 1)])
    np.testing.assert_array_equal(run.written[0][:, 2], [-np.inf, np.inf])
