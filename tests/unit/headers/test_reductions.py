"""tl::reduce_* over each kind of layout, along both dimensions, within a warp and across warps, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine_kernels import Kernels, Written

# Each change: the reductions of tests/host and tests/differential.
pytestmark = pytest.mark.nightly

F32, F16, I32 = np.float32, np.float16, np.int32
CASES = [
    ("mma_rows", (64, 64), 1, F32, F32),
    ("mma_rows_of_2_warps", (64, 64), 1, F32, F32),
    ("mma_cols_of_2_warps", (64, 48), 0, F32, F32),
    ("mma_cols", (32, 64), 0, F32, F32),
    ("operand_rows", (64, 32), 1, F16, F32),
    ("operand_b_rows", (32, 48), 1, F16, F32),
    ("operand_b_cols", (48, 32), 0, F16, F32),
    ("blocked_rows", (4, 1000), 1, F32, F32),
    ("blocked_rows_of_4_warps", (3, 520), 1, F32, F32),
    ("neighbouring_rows", (8, 72), 1, F32, F32),
    ("cols_of_neighbouring_rows", (40, 8), 0, F32, F32),
    ("blocked_cols_of_4_warps", (9, 64), 0, F32, F32),
    ("blocked_cols_in_warp", (40, 8), 0, F32, F32),
    ("blocked_cols_across", (40, 8), 0, F32, F32),
    ("blocked_one_dimension", (1, 1000), 1, F32, F32),
    ("odd_rows", (10, 60), 1, F32, F32),
    ("odd_cols", (10, 60), 0, F32, F32),
    ("rows_of_one_and_a_half_warps", (7, 96), 1, F32, F32),
    ("cols_of_three_lanes", (9, 8), 0, F32, F32),
    ("odd_line", (1, 100), 1, F32, F32),
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


CUBES = [
    ("cube_in_warp", (3, 5, 20)),
    ("cube_without_copies", (4, 6, 7)),
    ("cube_across", (2, 3, 130)),
    ("cube_odd", (3, 4, 24)),
]


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "shape"), CUBES)
def test_the_last_of_three_dimensions(
    kernels: Callable[[str], Kernels], name: str, shape: tuple[int, int, int]
) -> None:
    x = np.random.default_rng(5).integers(-20, 21, shape).astype(F32)
    written = Written(shape=(2, *shape[:2]), dtype=F32), Written(shape=shape, dtype=F32)
    run = kernels("reductions")(name, x, *written, schedule="shuffle", seed=2)
    i, j = np.indices(shape[:2])
    np.testing.assert_array_equal(run.written[0], [x.sum(2), np.maximum(x.max(2), i + j)])
    np.testing.assert_array_equal(run.written[1], x - x.sum(2, keepdims=True))


@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    ("name", "shape", "dtype"), [("tile_of_floats", (20, 64), F32), ("tile_of_halves", (33, 40), F16)]
)
def test_shared_tiles(kernels: Callable[[str], Kernels], name: str, shape: tuple[int, int], dtype: type) -> None:
    x = np.random.default_rng(6).integers(-20, 21, shape).astype(dtype)
    m, n = shape
    written = Written(shape=(3, m), dtype=F32), Written(shape=(3, n), dtype=F32), Written(shape=(1,), dtype=F32)
    run = kernels("reductions")(name, x, *written, schedule="shuffle", seed=2)
    wide = x.astype(float)
    rows = [wide.sum(1), np.maximum(wide.sum(1), wide.max(1)), wide.min(1)]
    cols = [abs(wide).max(0), wide.sum(0), np.maximum(wide.sum(0), wide.max(0))]
    np.testing.assert_array_equal(run.written[0], rows)
    np.testing.assert_array_equal(run.written[1], cols)
    assert run.written[2][0] == wide[0].sum()


@pytest.mark.needs("g++")
def test_bits(kernels: Callable[[str], Kernels]) -> None:
    x = np.random.default_rng(7).integers(-(2**31), 2**31, (6, 100)).astype(I32)
    x[:3] |= 0x1010
    run = kernels("reductions")("bits", x, Written(shape=(4, 6), dtype=I32))
    operations = np.bitwise_and, np.bitwise_or, np.bitwise_xor
    np.testing.assert_array_equal(run.written[0][:3], [operation.reduce(x, 1) for operation in operations])
    warp = x.ravel()[:32]
    of_warp = [warp.sum(dtype=I32), warp.max(), warp.min(), *(operation.reduce(warp) for operation in operations)]
    np.testing.assert_array_equal(run.written[0][3], of_warp)


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("low", "high", "expected"), [(0, 1, 0), (1, 5, 15), (0, 3, 5)])
def test_votes(kernels: Callable[[str], Kernels], low: int, high: int, expected: int) -> None:
    x = np.random.default_rng(8).integers(low, high, (5, 9)).astype(I32)
    run = kernels("reductions")("votes", x, Written(shape=(96,), dtype=I32), schedule="shuffle", seed=2)
    assert run.written[0].tolist() == [expected] * 96


@pytest.mark.needs("g++")
def test_one_element_decides_a_vote(kernels: Callable[[str], Kernels]) -> None:
    x = np.zeros((5, 9), I32)
    x[4, 8] = -1
    assert kernels("reductions")("votes", x, Written(shape=(96,), dtype=I32)).written[0][50] == 5
