"""Copies between tensors, shared tiles and fragments, with every alignment and every way to lie outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine_kernels import Kernels, ReadWrite, Written

pytestmark = pytest.mark.needs("g++")

ROWS, COLS = 48, 40
TYPES = {"half": np.float16, "float": np.float32, "byte": np.int8, "double": np.float64}
ANY = ["half_any_async", "half_any", "half_padded_async", "float_any_async", "float_any", "byte_any_async"]
# height and width of the tensor, and where in it the tile starts
PLACES = [(48, 40, 0, 0), (100, 160, 48, 80), (50, 101, 40, 80), (50, 102, 48, 64), (37, 33, 0, 0), (60, 64, 30, 5)]
OUTSIDE = [(20, 48, -8, -16), (20, 41, 30, 80), (0, 8, 0, 0), (8, 0, 0, 0)]


def numbers(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return np.random.default_rng(7).integers(1, 100, shape).astype(dtype)


def tile_of(x: np.ndarray, row: int, col: int) -> np.ndarray:
    """The tile at (row, col), zero where it lies outside x."""
    result = np.zeros((ROWS, COLS), x.dtype)
    for i in range(max(0, -row), min(ROWS, x.shape[0] - row)):
        js = range(max(0, -col), min(COLS, x.shape[1] - col))
        result[i, list(js)] = x[row + i, [col + j for j in js]]
    return result


@pytest.mark.parametrize("place", PLACES + OUTSIDE)
@pytest.mark.parametrize("name", [*ANY, "double_any_async"])
def test_rows_that_start_anywhere(kernels: Callable[[str], Kernels], name: str, place: tuple[int, ...]) -> None:
    x = numbers(place[:2], TYPES[name.split("_")[0]])
    run = kernels("copies")(name, x, Written(shape=(ROWS, COLS), dtype=x.dtype), *place)
    np.testing.assert_array_equal(run.written[0], tile_of(x, *place[2:]))


@pytest.mark.parametrize(
    "name, bytes_", [("half_16_async", 16), ("half_8_async", 8), ("half_4", 4), ("half_2_async", 2)]
)
def test_rows_that_start_at_known_multiples(kernels: Callable[[str], Kernels], name: str, bytes_: int) -> None:
    unit = bytes_ // 2
    for height, width, row, col in [(48, 40, 0, 0), (60, 64 + unit, 30, unit), (10, 8, 0, 0), (50, 48, -8, -2 * unit)]:
        x = numbers((height, width), np.float16)
        run = kernels("copies")(name, x, Written(shape=(ROWS, COLS), dtype=x.dtype), height, width, row, col)
        np.testing.assert_array_equal(run.written[0], tile_of(x, row, col))


def test_aligned_rows_are_copied_in_16_bytes(kernels: Callable[[str], Kernels]) -> None:
    x = numbers((48, 40), np.float16)
    run = kernels("copies")("half_any_async", x, Written(shape=(ROWS, COLS), dtype=x.dtype), 48, 40, 0, 0)
    assert {s["bytes"] for s in run.statistics["global"] if s["access"] == "read"} == {16}


@pytest.mark.parametrize("plane", [0, 2, 3, -1])
@pytest.mark.parametrize("stride", [64, 66, 67])
def test_gaps_between_rows_and_planes_outside(kernels: Callable[[str], Kernels], plane: int, stride: int) -> None:
    x = numbers((3, 50, stride), np.float32)
    run = kernels("copies")("planes", x, Written(shape=(ROWS, COLS), dtype=x.dtype), 3, 50, 61, stride, plane, 10, 32)
    expected = tile_of(x[plane, :, :61], 10, 32) if 0 <= plane < 3 else np.zeros((ROWS, COLS))
    np.testing.assert_array_equal(run.written[0], expected)


def test_a_column_major_tensor(kernels: Callable[[str], Kernels]) -> None:
    x = numbers((30, 45), np.float32)
    run = kernels("copies")("column_major", x.T, Written(shape=(ROWS, COLS), dtype=x.dtype), 30, 45)
    np.testing.assert_array_equal(run.written[0], tile_of(x, 0, 0))


@pytest.mark.parametrize("place", [(200, 160, 48, 80), (200, 101, 10, 70), (120, 62, 3, 7), (90, 30, 80, 0)])
@pytest.mark.parametrize("name", ["blocked", "accumulator"])
def test_through_registers(kernels: Callable[[str], Kernels], name: str, place: tuple[int, ...]) -> None:
    height, width, row, col = place
    x, to_row = numbers((height, width), np.float32), 1
    before = np.full((height, width), -1, np.float32)
    expected = before.copy()
    kept = expected[to_row : to_row + ROWS, col : col + COLS]
    kept[:] = tile_of(x, row, col)[: kept.shape[0], : kept.shape[1]]
    run = kernels("copies")(name, x, ReadWrite(before), height, width, row, col, to_row)
    np.testing.assert_array_equal(run.written[0], expected)


@pytest.mark.parametrize(("n", "at"), [(200, 0), (1000, 400), (399, 200), (205, 3), (150, 0), (0, 0)])
def test_one_dimension(kernels: Callable[[str], Kernels], n: int, at: int) -> None:
    x = numbers((n,), np.float16)
    run = kernels("copies")("line", x, ReadWrite(np.zeros_like(x)), n, at)
    expected = np.zeros_like(x)
    expected[at : at + 200] = x[at : at + 200]
    np.testing.assert_array_equal(run.written[0], expected)


@pytest.mark.parametrize("landing", ["late", "early", "random"])
@pytest.mark.parametrize("trips", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_pipelines(kernels: Callable[[str], Kernels], stages: int, trips: int, landing: str) -> None:
    x = numbers((8, 32 * trips), np.float32)
    y = Written(shape=(8, 32), dtype=np.float32)
    run = kernels("copies")(f"pipeline_{stages}", x, y, trips, landing=landing, schedule="shuffle", seed=trips)
    expected = sum(((k + 1) * x[:, 32 * k : 32 * k + 32] for k in range(trips)), np.zeros((8, 32), np.float32))
    np.testing.assert_array_equal(run.written[0], expected)


def test_more_elements_than_an_int_counts(kernels: Callable[[str], Kernels]) -> None:
    x = np.zeros((70000, 65536), np.int8)  # 4.6 GB of addresses, of which a page or two are touched
    assert kernels("copies").unchecked("far", x, *x.shape, 69999, 65520) == 0
    assert x[69999, 65520:].tolist() == [1] * 16
    assert x[69999, :64].tolist() == [0] * 64
