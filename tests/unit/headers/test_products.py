"""tl::gemm with every order, swizzle, type and place of its operands, against a product in float64."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from cute_tables import DOUBLE_A, DOUBLE_B, HALF_A, HALF_B, INT8_A, INT8_B, TF32_A, TF32_B, Table, places
from engine_kernels import Kernels, Written

# Each change: the GEMMs of tests/host and tests/differential.
pytestmark = pytest.mark.nightly

HALF, BFLOAT16 = np.float16, ml_dtypes.bfloat16
# name, M, N, K, A is stored K x M, B is stored N x K, operand type, accumulator type
SHARED = [
    ("half_nn", 64, 64, 32, False, False, HALF, np.float32),
    ("half_nt", 64, 64, 32, False, True, HALF, np.float32),
    ("half_tn", 64, 64, 32, True, False, HALF, np.float32),
    ("half_tt", 64, 64, 32, True, True, HALF, np.float32),
    ("half_panels", 128, 128, 128, True, False, HALF, np.float32),
    ("half_narrow", 32, 16, 16, False, False, HALF, np.float32),
    ("half_narrow_t", 16, 32, 16, True, True, HALF, np.float32),
    ("half_padded", 96, 48, 48, False, False, HALF, np.float32),
    ("half_padded_t", 48, 72, 48, True, True, HALF, np.float32),
    ("half_plain", 16, 8, 16, False, False, HALF, np.float32),
    ("half_into_half", 64, 64, 32, False, False, HALF, np.float16),
    ("bfloat16_nn", 64, 64, 32, False, False, BFLOAT16, np.float32),
    ("bfloat16_tt", 64, 64, 32, True, True, BFLOAT16, np.float32),
    ("int8_nt", 64, 64, 128, False, True, np.int8, np.int32),
    ("e4m3_nt", 64, 64, 64, False, True, ml_dtypes.float8_e4m3fn, np.float32),
    ("e5m2_nt", 32, 24, 128, False, True, ml_dtypes.float8_e5m2, np.float32),
    ("tf32_nt", 64, 64, 32, False, True, np.float32, np.float32),
    ("tf32_tn", 64, 96, 32, True, False, np.float32, np.float32),
    ("tf32_rounded", 32, 48, 64, False, False, np.float32, np.float32),
    ("int8_tn", 32, 64, 64, True, False, np.int8, np.int32),
    ("e4m3_tt", 48, 32, 32, True, True, ml_dtypes.float8_e4m3fn, np.float32),
    ("double_nn", 64, 64, 32, False, False, np.float64, np.float64),
    ("double_tt", 32, 48, 20, True, True, np.float64, np.float64),
]
REGISTERS = [("registers_41", 64, HALF), ("registers_22", 64, HALF), ("registers_bfloat16", 32, BFLOAT16)]


def integers(rng: np.random.Generator, shape: tuple[int, int], dtype: type) -> np.ndarray:
    """Small integers: every sum is exact in every type here."""
    return rng.integers(-4, 5, shape).astype(dtype)


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "m", "n", "k", "trans_a", "trans_b", "dtype", "accumulator"), SHARED)
def test_operands_in_shared_memory(
    kernels: Callable[[str], Kernels],
    name: str,
    m: int,
    n: int,
    k: int,
    trans_a: bool,
    trans_b: bool,
    dtype: type,
    accumulator: type,
) -> None:
    rng = np.random.default_rng(1)
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    run = kernels("products")(
        name, a.T if trans_a else a, b.T if trans_b else b, Written(shape=(m, n), dtype=accumulator)
    )
    np.testing.assert_array_equal(run.written[0].astype(float), a.astype(float) @ b.astype(float))
    size = np.dtype(dtype).itemsize
    gathered = size if size == 8 or (trans_a and size != 2) else 16
    # Eight rows without a swizzle share banks; rows of bytes lie 16 bytes apart at best, which is half of the banks.
    expected = {"half_plain": 2, "int8_tn": 2, "e4m3_tt": 2}.get(name, 1)
    assert run.worst_ways("read", gathered) == expected


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "m", "dtype"), REGISTERS)
def test_the_left_operand_in_registers(kernels: Callable[[str], Kernels], name: str, m: int, dtype: type) -> None:
    rng = np.random.default_rng(2)
    a, b = integers(rng, (m, 64), dtype), integers(rng, (64, 64), dtype)
    run = kernels("products")(name, a, b, Written(shape=(m, 64), dtype=np.float32))
    np.testing.assert_array_equal(run.written[0], 2 * (a.astype(float) @ b.astype(float)))


OPERANDS = [
    ("operands_half", HALF, False, HALF_A, HALF_B),
    ("operands_half_trans", HALF, True, HALF_A, HALF_B),
    ("operands_int8", np.int8, False, INT8_A, INT8_B),
    ("operands_tf32", np.float32, False, TF32_A, TF32_B),
    ("operands_int8_trans", np.int8, True, INT8_A, INT8_B),
    ("operands_tf32_trans", np.float32, True, TF32_A, TF32_B),
    ("operands_double", np.float64, False, DOUBLE_A, DOUBLE_B),
    ("operands_double_trans", np.float64, True, DOUBLE_A, DOUBLE_B),
]


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "dtype", "trans", "table_a", "table_b"), OPERANDS)
def test_registers_hold_what_cutes_tables_say(
    kernels: Callable[[str], Kernels], name: str, dtype: type, trans: bool, table_a: Table, table_b: Table
) -> None:
    """Each lane's registers, element by element: the row of the element in one run, its column in the other."""
    shape = (16, 32 // np.dtype(dtype).itemsize)  # A is (M, K), B is (N, K)
    for axis in (0, 1):
        x = np.indices(shape)[axis].astype(dtype)
        stored = x.T if trans else x
        run = kernels("products")(name, stored, stored, Written(shape=(32, 32), dtype=np.uint8))
        registers = run.written[0].view(dtype)
        expected_a = [[place[axis] for place in lane] for lane in places(table_a)]
        first_b = [[place[axis] for place in lane] for lane in places(table_b)]
        second_b = [[place[axis] + (8 if axis == 0 else 0) for place in lane] for lane in places(table_b)]
        expected = [a + b + c for a, b, c in zip(expected_a, first_b, second_b, strict=True)]
        np.testing.assert_array_equal(registers, expected)


# name, M, N, K, B is stored N x K, operand type
REGISTERS_B = [
    ("rr_22", 32, 48, 32, False, HALF),
    ("rr_14", 16, 32, 48, True, HALF),
    ("sr_41", 64, 24, 32, False, BFLOAT16),
    ("sr_22", 64, 32, 16, True, HALF),
    ("parts", 32, 32, 64, False, HALF),
    ("parts_padded", 32, 32, 64, False, HALF),
    ("parts_transposed", 32, 32, 64, True, HALF),
]


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "m", "n", "k", "trans_b", "dtype"), REGISTERS_B)
def test_right_operand_in_registers_and_parts_of_tiles(
    kernels: Callable[[str], Kernels], name: str, m: int, n: int, k: int, trans_b: bool, dtype: type
) -> None:
    rng = np.random.default_rng(9)
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    run = kernels("products")(name, a, b.T if trans_b else b, Written(shape=(m, n), dtype=np.float32))
    np.testing.assert_array_equal(run.written[0], a.astype(float) @ b.astype(float))


# name, M, N, K, B is stored N x K, operand type: A lies where an accumulator of its type would.
WIDE_REGISTERS = [
    ("wide_tf32", 64, 32, 32, False, np.float32),
    ("wide_tf32_t", 32, 32, 24, True, np.float32),
    ("wide_e4m3", 64, 32, 64, False, ml_dtypes.float8_e4m3fn),
    ("wide_int8_t", 32, 32, 32, True, np.int8),
    ("wide_double", 32, 16, 24, False, np.float64),
]


@pytest.mark.needs("g++")
@pytest.mark.parametrize(("name", "m", "n", "k", "trans_b", "dtype"), WIDE_REGISTERS)
def test_left_operand_of_other_widths_in_registers(
    kernels: Callable[[str], Kernels], name: str, m: int, n: int, k: int, trans_b: bool, dtype: type
) -> None:
    rng = np.random.default_rng(10)
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    accumulator = {np.int8: np.int32, np.float64: np.float64}.get(dtype, np.float32)
    run = kernels("products")(name, a, b.T if trans_b else b, Written(shape=(m, n), dtype=accumulator))
    np.testing.assert_array_equal(run.written[0], a.astype(float) @ b.astype(float))


@pytest.mark.needs("g++")
@pytest.mark.parametrize(
    ("name", "m", "n", "k", "trans", "dtype", "accumulator"),
    [
        ("fma_half_double", 33, 20, 7, False, HALF, np.float64),
        ("fma_transposed", 16, 40, 24, True, np.float64, np.float32),
        ("fma_int16", 8, 8, 5, False, np.int16, np.int32),
    ],
)
def test_products_without_tensor_cores(
    kernels: Callable[[str], Kernels], name: str, m: int, n: int, k: int, trans: bool, dtype: type, accumulator: type
) -> None:
    rng = np.random.default_rng(11)
    a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
    stored = (a.T, b.T) if trans else (a, b)
    run = kernels("products")(name, *stored, Written(shape=(m, n), dtype=accumulator))
    np.testing.assert_array_equal(run.written[0], 2 * (a.astype(float) @ b.astype(float)))
