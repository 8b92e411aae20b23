"""Integer operators on extreme values: the emitted source rounds, wraps and compares as the language says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

Operator = Callable[[np.ndarray, np.ndarray], np.ndarray]

LOW, HIGH = -(2**31), 2**31 - 1
VALUES = np.array([LOW, LOW + 1, -9, -8, -1, 0, 1, 7, 8, HIGH - 1, HIGH], np.int64)


def truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sign(a) * np.sign(b) * (abs(a) // abs(b))


# Computed in 64 bits, then kept in 32; sums and products of int32 that overflow are left out: C++ does not define them.
OPERATORS: dict[str, Operator] = {
    "A[i] // B[i]": lambda a, b: a // b,
    "A[i] % B[i]": lambda a, b: a % b,
    "T.truncdiv(A[i], B[i])": truncated,
    "T.truncmod(A[i], B[i])": lambda a, b: a - truncated(a, b) * b,
    "T.ceildiv(A[i], 7)": lambda a, b: -(-a // 7),
    "A[i] // 8": lambda a, b: a // 8,
    "A[i] % 8": lambda a, b: a % 8,
    "A[i] // -8": lambda a, b: a // -8,
    "A[i] % -8": lambda a, b: a % -8,
    "A[i] >> (B[i] & 31)": lambda a, b: a >> (b & 31),
    "T.max(A[i], B[i])": np.maximum,
    "T.min(A[i], B[i])": np.minimum,
    "T.if_then_else(A[i] < B[i], A[i], B[i])": np.minimum,
    'T.cast(T.cast(A[i], "int8"), "int32")': lambda a, b: a.astype(np.int8),
    'T.if_then_else(T.cast(A[i], "uint32") < T.cast(B[i], "uint32"), 1, 0)': lambda a, b: a % 2**32 < b % 2**32,
    'T.cast((T.cast(A[i], "int64") * B[i]) >> 32, "int32")': lambda a, b: (a * b) >> 32,
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_operators_on_extreme_values(target: str, tmp_path: Path) -> None:
    a, b = (side.ravel() for side in np.meshgrid(VALUES, VALUES[VALUES != 0]))
    defined = (a != LOW) | (b != -1)
    a, b = a[defined], b[defined]
    statements = "\n".join(
        f"for i in T.Parallel({len(a)}):\n    Y[{row}, i] = {text}" for row, text in enumerate(OPERATORS)
    )
    params = (
        f'A: T.Tensor(({len(a)},), "int32"), B: T.Tensor(({len(a)},), "int32"), '
        f'Y: T.Tensor(({len(OPERATORS)}, {len(a)}), "int32")'
    )
    kernel = load_body(tmp_path, statements, params, target=target, check=False)
    result = kernel(a.astype(np.int32), b.astype(np.int32))
    for text, found, operator in zip(OPERATORS, result, OPERATORS.values(), strict=True):
        np.testing.assert_array_equal(found, operator(a, b), err_msg=text)


def test_narrow_unsigned_integers_are_divided_by_negative_numbers(tmp_path: Path) -> None:
    """C++ computes with them in int, and rounds a quotient toward zero."""
    statements = """
        for i in T.Parallel(64):
            Y[0, i] = T.cast(A[i] // -3, "int32")
            Y[1, i] = T.cast(A[i] % -3, "int32")
            Y[2, i] = T.cast((A[i] // 3) % -7, "int32")
            Y[3, i] = T.cast((A[i] - B[i]) // 4, "int32")
    """
    params = 'A: T.Tensor((64,), "uint8"), B: T.Tensor((64,), "uint16"), Y: T.Tensor((4, 64), "int32")'
    kernel = load_body(tmp_path, statements, params, threads=64)
    a, b = np.arange(0, 256, 4).astype(np.uint8), np.arange(64)[::-1].astype(np.uint16) * 9
    wide = a.astype(int)
    expected = [wide // -3, wide % -3, wide // 3 % -7, (wide - b) // 4]
    np.testing.assert_array_equal(kernel(a, b), expected)


def test_integers_of_mixed_types_are_shifted_in_the_common_one(tmp_path: Path) -> None:
    """C++ shifts in the type of the left side alone."""
    statements = """
        for i in T.Parallel(64):
            Y[0, i] = A[i] << B[i]
            Y[1, i] = T.cast(A[i], "int16") >> T.cast(B[i], "uint64")
            Y[2, i] = T.cast(T.cast(A[i], "int8") >> T.cast(B[i], "uint32"), "int64")
    """
    params = 'A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int64"), Y: T.Tensor((3, 64), "int64")'
    kernel = load_body(tmp_path, statements, params, threads=64)
    a, b = (np.arange(64) - 32).astype(np.int32), (np.arange(64) % 40).astype(np.int64)
    b[b > 31] = 31
    wide, unsigned = a.astype(np.int64), a.astype(np.int64).astype(np.uint64)
    narrow = a.astype(np.int64).astype(np.uint32) >> b.astype(np.uint32)
    expected = [wide << b, (unsigned >> b.astype(np.uint64)).astype(np.int64), narrow.astype(np.int64)]
    np.testing.assert_array_equal(kernel(a, b), expected)


def test_numbers_are_converted_as_elements_are(tmp_path: Path) -> None:
    statements = """
        for i in T.Parallel(32):
            Y[0, i] = T.cast(T.cast(-5, "uint32"), "int64")
            Y[1, i] = T.cast(T.cast(300, "int8"), "int64")
            Y[2, i] = T.cast(T.cast(-1.75, "uint8"), "int64")
            Y[3, i] = T.cast(T.cast(3e9, "int32"), "int64")
    """
    kernel = load_body(tmp_path, statements, 'Y: T.Tensor((4, 32), "int64")', threads=32)
    expected = np.array([2**32 - 5, 44, 0, 2**31 - 1])[:, None].repeat(32, 1)
    np.testing.assert_array_equal(kernel(), expected)


def test_vectors_of_narrow_differences_are_divided(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((64, 32), "uint8")
        T.copy(A, S)
        for i, j in T.Parallel(64, 32):
            Y[i, j] = T.cast((S[i, j] - B[i, j]) % 3, "int32") + T.cast((S[i, j] - B[i, j]) // 4, "int32")
    """
    params = 'A: T.Tensor((64, 32), "uint8"), B: T.Tensor((64, 32), "uint8"), Y: T.Tensor((64, 32), "int32")'
    kernel = load_body(tmp_path, statements, params, threads=64)
    a, b = np.random.default_rng(2).integers(0, 256, (2, 64, 32)).astype(np.uint8)
    difference = a.astype(int) - b
    np.testing.assert_array_equal(kernel(a, b), difference % 3 + difference // 4)
