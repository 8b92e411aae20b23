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
