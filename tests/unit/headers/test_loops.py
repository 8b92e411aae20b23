"""tl::parallel, packets, elements and mathematics, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from engine_kernels import Kernels, ReadWrite, Written

pytestmark = pytest.mark.needs("g++")

F32 = np.float32
TYPES = {"float": F32, "half": np.float16, "bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize(
    "place", [(6, 64, 0, 0), (20, 200, 12, 128), (9, 101, 5, 64), (11, 100, -2, 60), (7, 66, 3, 8)]
)
@pytest.mark.parametrize("name", ["float_1", "float_4", "float_8_known", "half_1", "half_8", "bfloat16_8_known"])
def test_the_same_loop_with_every_vector(
    kernels: Callable[[str], Kernels], name: str, place: tuple[int, int, int, int]
) -> None:
    height, width, row, col = place
    if name == "float_8_known":
        width += -width % 4
    if name == "bfloat16_8_known":
        width += -width % 2
    x = np.random.default_rng(1).integers(-6, 7, (height, width)).astype(TYPES[name.split("_")[0]])
    run = kernels("loops")(name, x, ReadWrite(np.zeros_like(x)), height, width, row, col)
    expected = np.zeros((height, width))
    top = max(row, 0)
    wide = x[top : row + 6, col : col + 64].astype(float)
    chosen = np.where(wide % 2 == 0, np.clip(wide, -3, 2.5) * 2, -wide)
    expected[top : row + 6, col : col + 64] = chosen + np.arange(64)[: wide.shape[1]] + wide
    np.testing.assert_array_equal(run.written[0].astype(float), expected)


@pytest.mark.parametrize(("name", "shape"), [("broadcast_mma", (32, 48)), ("broadcast_blocked", (30, 50))])
def test_values_of_rows_and_columns(kernels: Callable[[str], Kernels], name: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(2).integers(-9, 10, shape).astype(F32)
    run = kernels("loops")(name, x, Written(shape=shape, dtype=F32))
    rows, cols = np.indices(shape)
    np.testing.assert_array_equal(run.written[0], x * (rows + 1) + 100 * cols)


def test_elements_of_shared_tiles_and_atomics(kernels: Callable[[str], Kernels]) -> None:
    x = np.random.default_rng(3).standard_normal((8, 32)).astype(F32)
    y, once = Written(shape=(8, 32), dtype=F32), Written(shape=(8,), dtype=F32)
    run = kernels("loops")("elements", x, y, ReadWrite(np.array([5, 5, 5], np.int32)), once)
    np.testing.assert_array_equal(run.written[0], x[:, ::-1])
    assert run.written[1].tolist() == [5 + 2 * 32] * 3
    assert run.written[2].tolist() == [10 * i + 32 for i in range(8)]


def test_three_dimensions(kernels: Callable[[str], Kernels]) -> None:
    x = np.random.default_rng(4).integers(0, 99, (3, 5, 20)).astype(F32)
    run = kernels("loops")("cube", x, Written(shape=x.shape, dtype=F32))
    i, j, _ = np.indices(x.shape)
    np.testing.assert_array_equal(run.written[0], x + 1000 * i + 100 * j)


def test_functions(kernels: Callable[[str], Kernels]) -> None:
    x = np.concatenate([np.linspace(-8, 8, 124), [0.5, 1.5, -2.5, 3.0]]).astype(F32)
    run = kernels("loops")("functions", x, Written(shape=(16, 128), dtype=F32))
    wide, size = x.astype(float), abs(x.astype(float))
    expected = [
        *(np.exp(wide), np.exp2(wide), np.log(size), np.log2(size), np.sqrt(size), 1 / np.sqrt(size)),
        *(np.tanh(wide), 1 / (1 + np.exp(-wide)), np.sin(wide), np.cos(wide), [math.erf(v) for v in wide]),
        *(np.floor(wide), np.ceil(wide), np.round(wide), np.trunc(wide), size**1.5),
    ]
    np.testing.assert_allclose(run.written[0], expected, rtol=2e-6, atol=1e-7)


def test_an_empty_grid_is_no_launch(kernels: Callable[[str], Kernels]) -> None:
    assert kernels("loops").unchecked("empty_grid", np.zeros(1), np.zeros(1)) == 0


@pytest.mark.parametrize("grid", [(1, 1), (4, 3), (5, 7), (7, 2), (1, 9), (2, 9), (6, 8)])
@pytest.mark.parametrize(("name", "panel"), [("order_rows", 3), ("order_columns", 2), ("order_on_dies", 3)])
def test_panels_are_a_serpentine(
    kernels: Callable[[str], Kernels], name: str, panel: int, grid: tuple[int, int]
) -> None:
    run = kernels("loops")(name, Written(shape=(grid[1], grid[0]), dtype=np.int32), *grid)
    tiles = run.written[0].T if name == "order_columns" else run.written[0]
    breadth, length = tiles.shape
    panel = panel if "dies" in name else min(panel, length)
    expected = np.empty_like(tiles)
    # Dealt to 4 dies in turn, and then taken die after die.
    order = [block for die in range(4) for block in range(die, tiles.size, 4)] if "dies" in name else range(tiles.size)
    blocks = iter(order)
    for first in range(0, breadth, panel):
        backwards = first // panel % 2 == 1
        for along in reversed(range(length)) if backwards else range(length):
            for far in range(first, min(first + panel, breadth)):
                expected[far, along] = next(blocks)
    np.testing.assert_array_equal(tiles, expected)


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 5), (5, 3), (8, 7)])
@pytest.mark.parametrize(("wide", "high"), [(1, 2), (2, 1), (2, 4)])
def test_panels_of_clusters_keep_their_blocks_together(
    kernels: Callable[[str], Kernels], wide: int, high: int, columns: int, rows: int
) -> None:
    """Up to 6 rows of tiles, 2 of a short panel, but whole clusters; the panels of clusters are a serpentine."""
    grid = (columns * wide, rows * high)
    run = kernels("loops")(f"clusters_{wide}_{high}", Written(shape=(grid[1], grid[0]), dtype=np.int32), *grid)
    panel = max((6 if grid[0] >= 6 else 2) // high, 1)
    expected = np.empty_like(run.written[0])
    clusters = iter(range(columns * rows))
    for first in range(0, rows, panel):
        along = range(columns) if first // panel % 2 == 0 else reversed(range(columns))
        for x, y in [(x, y) for x in along for y in range(first, min(first + panel, rows))]:
            cluster = next(clusters)
            for i, j in np.ndindex(high, wide):
                block = cluster % columns * wide + j + (cluster // columns * high + i) * grid[0]
                expected[y * high + i, x * wide + j] = block
    np.testing.assert_array_equal(run.written[0], expected)


@pytest.mark.parametrize("grid", [(1, 1, 1), (4, 3, 2), (5, 7, 3), (3, 1, 1)])
def test_each_xcd_has_a_contiguous_range(kernels: Callable[[str], Kernels], grid: tuple[int, int, int]) -> None:
    """The blocks that the hardware assigns to an XCD, every fourth one, are neighbours, and come one XCD at a time."""
    run = kernels("loops")("order_contiguous", Written(shape=grid[::-1], dtype=np.int32), *grid)
    blocks = run.written[0].ravel()
    assert blocks.tolist() == [block for xcd in range(4) for block in range(xcd, blocks.size, 4)]


def test_blocks_that_run_on_one_die_share_operands(kernels: Callable[[str], Kernels]) -> None:
    """Nine blocks at once on the first of four dies: as the grid comes they need 9 columns and 2 rows of tiles."""
    run = kernels("loops")("order_on_dies", Written(shape=(16, 33), dtype=np.int32), 33, 16)
    rows, columns = np.nonzero((run.written[0] % 4 == 0) & (run.written[0] < 4 * 9))
    assert (len(rows), len({*rows.tolist()}), len({*columns.tolist()})) == (9, 3, 3)
