"""tl::atomic_*: elements, packets and tiles against NumPy, and what counts as a race."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from engine_kernels import Kernels, ReadWrite, Written

# Each change: tests/host/test_atomics.py.
pytestmark = [pytest.mark.needs("g++"), pytest.mark.nightly]

TYPES = {
    "float": np.float32, "double": np.float64, "int": np.int32, "unsigned": np.uint32, "int64": np.int64,
    "half": np.float16, "bfloat16": ml_dtypes.bfloat16,
}  # fmt: skip
SHAPE = (12, 48)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", TYPES)
def test_elements_of_tensors_and_shared_tiles(kernels: Callable[[str], Kernels], name: str, workers: int) -> None:
    low = 0 if name == "unsigned" else -2
    x = np.random.default_rng(1).integers(low, 3, SHAPE).astype(TYPES[name])
    y, z = np.full((3, 11), 1, x.dtype), Written(shape=(3, 12), dtype=x.dtype)
    run = kernels("atomics")(f"elements_{name}", x, ReadWrite(y), z, workers=workers)
    wide = x.astype(float)
    most, least = np.maximum(wide.max(1), 1), np.minimum(wide.min(1), 1)
    blocks = [1 + 3 * wide.sum(1), most, least]
    np.testing.assert_array_equal(run.written[0].astype(float), np.array(blocks)[:, :11])
    np.testing.assert_array_equal(run.written[1].astype(float), [1 + wide.sum(1), most, least])


def test_bits_and_tickets(kernels: Callable[[str], Kernels]) -> None:
    x = np.random.default_rng(2).integers(0, 2**32, SHAPE).astype(np.uint32)
    start = np.array([[0xFFFFFFFF], [0], [5]], np.uint32).repeat(12, 1)
    tickets = np.zeros(12 * 48 + 1, np.int32)
    run = kernels("atomics")("bits", x, ReadWrite(start), ReadWrite(tickets), schedule="shuffle", seed=3)
    expected = [np.bitwise_and.reduce(x, 1), np.bitwise_or.reduce(x, 1), np.bitwise_xor.reduce(x, 1) ^ 5]
    np.testing.assert_array_equal(run.written[0], expected)
    assert run.written[1][0] == 12 * 48
    assert sorted(run.written[1][1:]) == list(range(12 * 48))


PLACES = [(32, 24, 0, 0), (40, 48, 8, 24), (37, 53, 20, 8), (33, 31, -3, 8), (40, 30, 5, 7)]
TILES = ["float", "float_known", "half", "half_known", "bfloat16", "int"]


@pytest.mark.parametrize(("name", "place"), list(itertools.product(TILES, PLACES)))
def test_tiles(kernels: Callable[[str], Kernels], name: str, place: tuple[int, int, int, int]) -> None:
    rows, cols, row, col = place
    if name.endswith("_known"):
        cols, col = cols + -cols % 8, col - col % 8
    dtype = TYPES[name.split("_")[0]]
    x = np.random.default_rng(4).integers(-9, 10, (32, 24)).astype(np.float32)
    total, most = np.ones((4, rows, cols), dtype), np.full((rows, cols), 2, dtype)
    run = kernels("atomics")(f"tiles_{name}", x, ReadWrite(total), ReadWrite(most), rows, cols, row, col)
    top, left = max(row, 0), max(col, 0)
    inside = x[top - row : rows - row, left - col : cols - col]
    window = (slice(top, top + inside.shape[0]), slice(left, left + inside.shape[1]))
    expected = np.ones((rows, cols))
    expected[window] += 2 * inside
    np.testing.assert_array_equal(run.written[0].astype(float), [expected] * 4)
    # Maximum, then minimum, with the same tile: the tile itself.
    extreme = np.full((rows, cols), 2.0)
    extreme[window] = inside
    np.testing.assert_array_equal(run.written[1].astype(float), extreme)


def test_atomics_of_several_blocks_are_no_race(kernels: Callable[[str], Kernels]) -> None:
    run = kernels("atomics")("mixed", ReadWrite(np.zeros(2, np.int32)), 0)
    assert run.written[0][0] == 3


@pytest.mark.parametrize(
    ("fault", "message"),
    [(1, "updates atomically"), (2, "other blocks updated atomically"), (3, "block 1 reads")],
)
def test_an_atomic_and_a_plain_access_of_two_blocks_are_a_race(
    kernels: Callable[[str], Kernels], fault: int, message: str
) -> None:
    findings = kernels("atomics").findings("mixed", ReadWrite(np.zeros(2, np.int32)), fault)
    assert {finding["kind"] for finding in findings} == {"race between blocks"}
    assert any(message in finding["message"] for finding in findings), findings


def test_an_atomic_reads_what_it_updates(kernels: Callable[[str], Kernels]) -> None:
    findings = kernels("atomics").findings("mixed", Written(shape=(2,), dtype=np.int32), 0)
    assert {finding["kind"] for finding in findings} == {"uninitialised global read"}
