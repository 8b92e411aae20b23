"""Arithmetic whose rounding is stated, against exact fractions, and functions of single bits."""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

N = 77
RNG = np.random.default_rng(5)


def _rounded(value: Fraction, mode: str, dtype: type[np.floating]) -> np.floating:
    """The number of a type that a mode takes for an exact one."""
    near = dtype(float(value)) if dtype is np.float64 else dtype(np.float64(float(value)))
    below = above = near
    while Fraction(float(below)) > value:
        below = np.nextafter(below, dtype(-np.inf))
    while Fraction(float(np.nextafter(below, dtype(np.inf)))) <= value:
        below = np.nextafter(below, dtype(np.inf))
    above = below if Fraction(float(below)) == value else np.nextafter(below, dtype(np.inf))
    if mode == "rn":
        low, high = value - Fraction(float(below)), Fraction(float(above)) - value
        even = below if below.view(f"u{below.itemsize}") % 2 == 0 else above
        return below if low < high else above if high < low else even
    return {"rd": below, "ru": above, "rz": below if value > 0 else above}[mode]


def _root(value: Fraction) -> Fraction:
    """A square root, to some 200 bits more than any type has; exact where it is one."""
    scale = 1 << 400
    numerator = value.numerator * value.denominator * scale * scale
    root = isqrt(numerator)
    exact = root * root == numerator
    return Fraction(2 * root + (0 if exact else 1), 2 * scale * value.denominator)


OPERATIONS: dict[str, tuple[str, Callable[..., Fraction]]] = {
    "ieee_add": ("x, y", lambda x, y, z: x + y),
    "ieee_sub": ("x, y", lambda x, y, z: x - y),
    "ieee_mul": ("x, y", lambda x, y, z: x * y),
    "ieee_fdiv": ("x, y", lambda x, y, z: x / y),
    "ieee_fmaf": ("x, y, z", lambda x, y, z: x * y + z),
    "ieee_frcp": ("y", lambda x, y, z: 1 / y),
    "ieee_fsqrt": ("T.abs(y)", lambda x, y, z: _root(abs(y))),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_rounding(dtype: type[np.floating], tmp_path: Path) -> None:
    calls = [
        (name, arguments, mode, exact)
        for name, (arguments, exact) in OPERATIONS.items()
        for mode in ("rn", "rz", "ru", "rd")
    ]
    stores = "\n".join(
        f"    B[{row}, i] = T.{name}({arguments}, {f'rounding_mode={mode!r}' if row % 2 else repr(mode)})"
        for row, (name, arguments, mode, _) in enumerate(calls)
    )
    reads = "\n".join(f"    {each} = A[{row}, i]" for row, each in enumerate("xyz"))
    kernel = load_body(
        tmp_path,
        f"for i in T.Parallel({N}):\n{reads}\n{stores}",
        f'A: T.Tensor((3, {N}), "{dtype.__name__}"), B: T.Tensor(({len(calls)}, {N}), "{dtype.__name__}")',
    )
    operands = (RNG.standard_normal((3, N)) * 2.0 ** RNG.integers(-9, 10, (3, N))).astype(dtype)
    operands[:, 0] = 1.5, -0.75, 2.0
    found = np.asarray(kernel(operands))
    values = [[Fraction(float(each)) for each in row] for row in operands]
    for row, (name, _, mode, exact) in enumerate(calls):
        expected = [_rounded(exact(*column), mode, dtype) for column in zip(*values, strict=True)]
        np.testing.assert_array_equal(found[row], expected, err_msg=f"{name} {mode}")
    rows = {(name, mode): found[row] for row, (name, _, mode, _) in enumerate(calls)}
    assert all((rows[name, "ru"] != rows[name, "rd"]).mean() > 0.5 for name in OPERATIONS)  # the modes differ


def test_reciprocal_roots_and_small_types(tmp_path: Path) -> None:
    statements = f"""
        for i in T.Parallel({N}):
            B[0, i] = T.ieee_frsqrt(A[0, i])
            B[1, i] = T.ieee_mul(T.cast(A[0, i], "float16"), T.cast(A[1, i], "float16"))
    """
    kernel = load_body(tmp_path, statements, f'A: T.Tensor((2, {N}), "float32"), B: T.Tensor((2, {N}), "float32")')
    operands = RNG.uniform(0.1, 9, (2, N)).astype(np.float32)
    found = np.asarray(kernel(operands))
    roots = [_rounded(_root(1 / Fraction(float(each))), "rn", np.float32) for each in operands[0]]
    np.testing.assert_array_equal(found[0], roots)
    np.testing.assert_array_equal(found[1], operands[0].astype(np.float16) * operands[1].astype(np.float16))


def test_bits_and_read_only_loads(tmp_path: Path) -> None:
    statements = f"""
        for i in T.Parallel({N}):
            B[0, i] = T.__ffs(T.__ldg(A[0, i]))
            B[1, i] = T.__ffs(T.shift_left(T.cast(A[0, i], "int64"), 30))
            for n in T.unroll(7):
                B[2 + n, i] = T.cast(T.__fns(A[0, i], A[1, i], n - 3), "int32")
            B[9, i] = T.popcount(A[0, i]) - T.cast(T.popcount(T.cast(A[0, i], "int64")), "int32")
    """
    kernel = load_body(tmp_path, statements, f'A: T.Tensor((2, {N}), "int32"), B: T.Tensor((10, {N}), "int32")')
    bits = RNG.integers(-(2**31), 2**31, N).astype(np.int32)
    bits[:4] = 0, 1, -(2**31), -1
    first = RNG.integers(0, 32, N).astype(np.int32)
    found = np.asarray(kernel(np.stack([bits, first])))
    np.testing.assert_array_equal(found[0], [(int(each) & -int(each)).bit_length() for each in bits])
    wide = [int(each) << 30 for each in bits]
    np.testing.assert_array_equal(found[1], [(each & -each).bit_length() for each in wide])
    for n in range(-3, 4):
        assert list(found[5 + n]) == [_nth_set(int(word), int(at), n) for word, at in zip(bits, first, strict=True)]
    np.testing.assert_array_equal(found[9], np.where(bits < 0, -32, 0))  # the copies of a sign


def test_quotients_toward_zero_and_limits_of_types(tmp_path: Path) -> None:
    statements = f"""
        for i in T.Parallel({N}):
            B[0, i] = T.truncdiv(A[0, i], A[1, i])
            B[1, i] = T.truncmod(A[0, i] - 1, A[1, i]) - T.truncdiv(7, -2) * (A[0, i] // A[1, i])
            B[2, i] = T.max(T.min_value("int32") + A[1, i], T.max_value("int8"))
            B[3, i] = T.cast(T.max_value("float8_e4m3fn") * A[1, i], "int32")
            B[4, i] = T.cast(T.cast(A[0, i], "int64") // A[1, i] + A[1, i] % T.cast(7, "int64"), "int32")
    """
    kernel = load_body(tmp_path, statements, f'A: T.Tensor((2, {N}), "int32"), B: T.Tensor((5, {N}), "int32")')
    a = RNG.integers(-(2**20), 2**20, N)
    b = RNG.integers(1, 2**10, N) * RNG.choice([-1, 1], N)
    b = np.where(np.arange(N) % 2, b, abs(b))
    found = np.asarray(kernel(np.stack([a, b]).astype(np.int32)))
    np.testing.assert_array_equal(found[0], np.trunc(a / b))
    np.testing.assert_array_equal(found[1], np.fmod(a - 1, b) + 3 * np.floor(a / b))
    np.testing.assert_array_equal(found[2], np.full(N, 127))
    np.testing.assert_array_equal(found[3], 448 * b)
    np.testing.assert_array_equal(found[4], a // b + b % 7)


def _nth_set(bits: int, first: int, n: int) -> int:
    """The place of the n-th bit that is set, or -1."""
    places = range(first, 32) if n > 0 else range(first, -1, -1) if n < 0 else [first]
    found = [at for at in places if bits >> at & 1]
    return found[max(abs(n), 1) - 1] if len(found) >= max(abs(n), 1) else -1


OUT_OF_RANGE = """
for i in T.Parallel(8):
    Out[0, i] = T.cast(T.cast(X[i], "int8"), "int64")
    Out[1, i] = T.cast(T.cast(X[i], "uint8"), "int64")
    Out[2, i] = T.cast(T.cast(X[i], "uint16"), "int64")
    Out[3, i] = T.cast(T.cast(X[i], "int32"), "int64")
    Out[4, i] = T.cast(T.cast(X[i], "uint32"), "int64")
    Out[5, i] = T.cast(X[i], "int64")
    Out[6, i] = T.cast(T.cast(X[i], "uint64"), "int64")
"""


def test_floats_out_of_an_integer_s_range_become_what_instructions_give(tmp_path: Path) -> None:
    """They saturate in 32 or 64 bits, of which narrower types have the lower ones (PTX ISA, cvt.rzi)."""
    kernel = load_body(
        tmp_path, OUT_OF_RANGE, 'X: T.Tensor((8,), "float32"), Out: T.Tensor((7, 8), "int64")', threads=32
    )
    x = np.array([-1.75, 300, -300, 3e9, -3e9, np.nan, 1e20, 2.5], np.float32)
    narrow, low, high, least = (1 << 31) - 1, -(1 << 31), (1 << 32) - 1, -(1 << 63)
    expected = [
        [-1, 44, -44, -1, 0, 0, -1, 2],  # the lower 8 bits of the int32 of row 3
        [0, 44, 0, 3_000_000_000 % 256, 0, 0, 255, 2],
        [0, 300, 0, 3_000_000_000 % 65536, 0, 0, 65535, 2],
        [-1, 300, -300, narrow, low, 0, narrow, 2],
        [0, 300, 0, 3_000_000_000, 0, 0, high, 2],
        [-1, 300, -300, 3_000_000_000, -3_000_000_000, least, (1 << 63) - 1, 2],
        [0, 300, 0, 3_000_000_000, 0, least, -1, 2],
    ]
    np.testing.assert_array_equal(kernel(x), expected)


def test_elements_of_8_bits_are_updated_in_place(tmp_path: Path) -> None:
    """Each update rounds once, and saturates: the square of 1.125 to 1.25."""
    body = """
    F = T.alloc_fragment((4,), "float8_e4m3fn")
    for i in T.Parallel(4):
        F[i] = T.cast(X[i], "float8_e4m3fn")
    for i in T.Parallel(4):
        F[i] *= T.cast(1.25, "float8_e4m3fn")
    for i in T.Parallel(4):
        F[i] -= F[i]
    for i in T.Parallel(4):
        F[i] += T.cast(X[i], "float8_e4m3fn")
    for i in T.Parallel(4):
        F[i] *= F[i]
        Out[i] = T.cast(F[i], "float32")
    """
    kernel = load_body(tmp_path, body, 'X: T.Tensor((4,), "float32"), Out: T.Tensor((4,), "float32")', threads=32)
    x = np.array([1.125, -2.0, 0.5, 30.0], np.float32)
    np.testing.assert_array_equal(kernel(x), [1.25, 4.0, 0.25, 448.0])


LITERALS = {
    "float64": [(300.7, "int8"), (-3.5, "uint8"), (3e9, "int32"), (1e20, "int64"), (0.1, "float16"), (0.1, "bfloat16"),
                (70000.0, "float16"), (1e9, "float8_e4m3fn"), (16777217.0, "float32")],
    "int64": [(300, "int8"), (-3, "uint8"), (-1, "uint32"), (1 << 32, "int32"), (16777217, "float32")],
}  # fmt: skip


@pytest.mark.parametrize("dtype", LITERALS)
def test_literals_are_converted_as_values_are(dtype: str, tmp_path: Path) -> None:
    body = "".join(
        f'Out[0, {n}] = T.cast(T.cast({number!r}, "{to}"), "{dtype}")\n'
        f'Out[1, {n}] = T.cast(T.cast(X[{n}], "{to}"), "{dtype}")\n'
        for n, (number, to) in enumerate(LITERALS[dtype])
    )
    count = len(LITERALS[dtype])
    params = f'X: T.Tensor(({count},), "{dtype}"), Out: T.Tensor((2, {count}), "{dtype}")'
    literals, values = load_body(tmp_path, body, params, threads=32)(np.array([x for x, _ in LITERALS[dtype]], dtype))
    np.testing.assert_array_equal(literals, values)


def test_numbers_that_are_stored_are_converted_as_values_are(tmp_path: Path) -> None:
    """And sums of literals of a type are what those of such values are: of narrow integers, computed in int."""
    body = """
    U[0] = -3.5
    U[1] = 300.7
    I[0] = 1e20
    I[1] = T.cast(200, "uint8") + T.cast(100, "uint8")
    I[2] = T.cast(X[0], "uint8") + T.cast(X[1], "uint8")
    I[3] = T.cast(16777217, "float32") - 16777216.0
    I[4] = T.cast(T.cast(1, "uint32") - T.cast(2, "uint32") > 5, "int32")
    """
    params = 'X: T.Tensor((2,), "int32"), U: T.Tensor((2,), "uint8"), I: T.Tensor((5,), "int32")'
    kernel = load_body(tmp_path, body, params, threads=32)
    u, i = np.zeros(2, np.uint8), np.zeros(5, np.int32)
    kernel(np.array([200, 100], np.int32), u, i)
    assert u.tolist() == [0, 44] and i.tolist() == [2**31 - 1, 300, 300, 0, 1]
