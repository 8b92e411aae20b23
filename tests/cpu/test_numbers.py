"""half and bfloat16 of headers/tl/host/numeric.h against NumPy and ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from kernels_under_test import Bench

ALL_16BIT = np.arange(65536, dtype=np.uint16)
TYPES = {"half": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


def sample_of_floats() -> np.ndarray:
    """Every 10007th bit pattern, and the neighbours of all ties: values half way between two 16-bit numbers."""
    sweep = np.arange(0, 2**32, 10007, dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):
        halves = ALL_16BIT.view(np.float16).astype(np.float64)
        ties = ((halves[:-1] + halves[1:]) / 2).astype(np.float32).view(np.uint32).astype(np.int64)
    bfloat16_ties = ALL_16BIT.astype(np.int64) << 16 | 0x8000
    around = [pattern + offset for pattern in (ties, bfloat16_ties) for offset in (-1, 0, 1)]
    patterns = (np.concatenate([sweep, *around]) % 2**32).astype(np.uint32)
    return patterns[: len(patterns) // 128 * 128].view(np.float32)


def assert_same(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal bits, or both not a number."""
    nan = np.isnan(expected.astype(np.float32))
    np.testing.assert_array_equal(np.isnan(actual.astype(np.float32)), nan)
    unsigned = np.dtype(f"u{actual.dtype.itemsize}")
    np.testing.assert_array_equal(actual[~nan].view(unsigned), expected[~nan].view(unsigned))


@pytest.mark.parametrize("name", TYPES)
def test_every_16bit_value_widens(bench: Bench, name: str) -> None:
    values = ALL_16BIT.view(TYPES[name])
    outcome = bench.launch("primitives", f"{name}_to_float_run", values, np.zeros(65536, np.float32))
    with np.errstate(invalid="ignore"):
        assert_same(outcome.arrays[1], values.astype(np.float32))


@pytest.mark.parametrize("name", TYPES)
def test_floats_round_to_nearest_even(bench: Bench, name: str) -> None:
    floats = sample_of_floats()
    out, packed = np.zeros(len(floats), TYPES[name]), np.zeros((len(floats), 2), TYPES[name])
    outcome = bench.launch("primitives", f"float_to_{name}_run", len(floats) // 128, floats, out, packed)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = floats.astype(TYPES[name])
    assert_same(outcome.arrays[1], expected)
    swapped = expected.reshape(-1, 2)[:, ::-1].reshape(-1)
    assert_same(outcome.arrays[2][:, 0].copy(), expected)
    assert_same(outcome.arrays[2][:, 1].copy(), swapped)


@pytest.mark.parametrize("name", TYPES)
def test_arithmetic_is_correctly_rounded(bench: Bench, name: str) -> None:
    """Against float64, which holds sums, differences and products exactly and quotients far beyond 11 digits."""
    values = ALL_16BIT.view(TYPES[name])
    others = values[np.arange(65536) * 7919 % 65536]
    outcome = bench.launch("primitives", f"{name}_arithmetic_run", values, np.zeros((65536, 5), TYPES[name]))
    with np.errstate(all="ignore"):
        a, b = values.astype(np.float64), others.astype(np.float64)
        expected = [a + b, a - b, a * b, a / b, np.where(a < b, a, b)]
        for column, exact in enumerate(expected):
            assert_same(outcome.arrays[1][:, column].copy(), exact.astype(TYPES[name]))


def test_portable_conversions_equal_those_of_the_processor(bench: Bench) -> None:
    """x86 converts by F16C where the compiler may use it; elsewhere the header's own arithmetic has to do."""
    floats = sample_of_floats()
    results = {}
    for which in ("portable", "default"):
        halves, back = np.zeros(len(floats), np.uint16), np.zeros(65536, np.float32)
        outcome = bench.launch("numbers", f"{which}_conversions", len(floats), floats, halves, ALL_16BIT, back)
        results[which] = outcome.arrays
    np.testing.assert_array_equal(results["portable"][1], results["default"][1])  # a NaN is 0x7fff in both
    assert_same(results["portable"][3], results["default"][3])
