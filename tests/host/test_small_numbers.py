"""Numbers of 4 and 2 bits in bytes: decoded eight at a time, multiplied four at a time, and as they are elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(4)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("less", [0, 8, 15])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_nibbles_less_a_number(dtype: str, less: int, tmp_path: Path) -> None:
    statements = f"""
        P = T.alloc_shared((64, 32), "uint8")
        S = T.alloc_shared((64, 64), "{dtype}")
        T.copy(X, P)
        for i, j in T.Parallel(64, 64):
            nibble = T.cast(P[i, j // 2], "int32") >> (4 * (j % 2)) & 15
            S[i, j] = T.cast(nibble - {less}, "{dtype}")
        T.copy(S, Y)
    """
    params = f'X: T.Tensor((64, 32), "uint8"), Y: T.Tensor((64, 64), "{dtype}")'
    kernel = load_body(tmp_path, statements, params)
    assert "tl::unpack_uint4(" in kernel.source
    assert "tl::parallel_into<" in kernel.source
    x = RNG.integers(0, 256, (64, 32)).astype(np.uint8)
    expected = np.stack([x & 15, x >> 4], axis=-1).reshape(64, 64).astype(int) - less
    np.testing.assert_array_equal(kernel(x), expected.astype(dtype))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("less", [0, 1, 3])
def test_sums_of_four_products(less: int, tmp_path: Path) -> None:
    statements = f"""
        x = T.alloc_shared((512,), "int8")
        packed = T.alloc_fragment((16, 128), "uint8")
        sums = T.alloc_fragment((16, 128), "int32")
        T.copy(A, x)
        T.copy(X, packed)
        T.clear(sums)
        for i, j in T.Parallel(16, 128):
            for part in T.unroll(4):
                weight = (T.cast(packed[i, j], "int32") >> (2 * part) & 3) - {less}
                sums[i, j] += weight * T.cast(x[4 * j + part], "int32")
        T.copy(sums, Y)
    """
    params = 'A: T.Tensor((512,), "int8"), X: T.Tensor((16, 128), "uint8"), Y: T.Tensor((16, 128), "int32")'
    kernel = load_body(tmp_path, statements, params)
    assert "tl::dp4a(" in kernel.source
    a = RNG.integers(-128, 128, 512).astype(np.int8)
    x = RNG.integers(0, 256, (16, 128)).astype(np.uint8)
    weights = (x[:, :, None] >> np.array([0, 2, 4, 6]) & 3).astype(int) - less
    np.testing.assert_array_equal(kernel(a, x), (weights * a.reshape(128, 4).astype(int)).sum(axis=-1))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("step", "first", "turn"), [(4, 3, -1), (3, 0, 1), (4, 0, 0)])
def test_other_orders_stay_as_they_are(step: int, first: int, turn: int, tmp_path: Path) -> None:
    statements = f"""
        x = T.alloc_shared((512,), "int8")
        packed = T.alloc_fragment((16, 128), "uint8")
        sums = T.alloc_fragment((16, 128), "int32")
        T.copy(A, x)
        T.copy(X, packed)
        T.clear(sums)
        for i, j in T.Parallel(16, 128):
            for part in T.unroll(4):
                weight = T.cast(packed[i, j], "int32") >> (2 * part) & 3
                sums[i, j] += weight * T.cast(x[{step} * j + {first} + {turn} * part], "int32")
        T.copy(sums, Y)
    """
    params = 'A: T.Tensor((512,), "int8"), X: T.Tensor((16, 128), "uint8"), Y: T.Tensor((16, 128), "int32")'
    kernel = load_body(tmp_path, statements, params)
    assert "tl::dp4a(" not in kernel.source
    a = RNG.integers(-128, 128, 512).astype(np.int8)
    x = RNG.integers(0, 256, (16, 128)).astype(np.uint8)
    part = np.arange(4)
    places = step * np.arange(128)[:, None] + first + turn * part
    weights = (x[:, :, None] >> 2 * part & 3).astype(int)
    np.testing.assert_array_equal(kernel(a, x), (weights * a[places].astype(int)).sum(axis=-1))


@pytest.mark.nightly
@pytest.mark.parametrize("less", [0, 1, 3])
def test_sums_of_which_only_the_total_is_read_take_any_products(less: int, tmp_path: Path) -> None:
    statements = f"""
        x = T.alloc_shared((512,), "int8")
        packed = T.alloc_fragment((16, 128), "uint8")
        sums = T.alloc_fragment((16, 128), "int32")
        total = T.alloc_fragment((16,), "int32")
        T.copy(A, x)
        T.copy(X, packed)
        T.fill(sums, 5)
        for i, j in T.Parallel(16, 128):
            for part in T.unroll(4):
                weight = (T.cast(packed[i, j], "int32") >> (2 * part) & 3) - {less}
                sums[i, j] += weight * T.cast(x[4 * j + part], "int32")
        T.reduce_sum(sums, total, dim=1)
        T.copy(total, Y)
    """
    params = 'A: T.Tensor((512,), "int8"), X: T.Tensor((16, 128), "uint8"), Y: T.Tensor((16,), "int32")'
    kernel = load_body(tmp_path, statements, params)
    assert "tl::dp4a_total(" in kernel.source
    a = RNG.integers(-128, 128, 512).astype(np.int8)
    x = RNG.integers(0, 256, (16, 128)).astype(np.uint8)
    weights = (x[:, :, None] >> np.array([0, 2, 4, 6]) & 3).reshape(16, 512).astype(int) - less
    np.testing.assert_array_equal(kernel(a, x), weights @ a.astype(int) + 5 * 128)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("reader", ["T.reduce_sum(sums, total, dim=0)", "T.reduce_max(sums, total, dim=1)"])
def test_sums_that_are_read_otherwise_take_their_own_products(reader: str, tmp_path: Path) -> None:
    extent = 128 if "dim=0" in reader else 16
    statements = f"""
        x = T.alloc_shared((512,), "int8")
        packed = T.alloc_fragment((16, 128), "uint8")
        sums = T.alloc_fragment((16, 128), "int32")
        total = T.alloc_fragment(({extent},), "int32")
        T.copy(A, x)
        T.copy(X, packed)
        T.clear(sums)
        for i, j in T.Parallel(16, 128):
            for part in T.unroll(4):
                weight = T.cast(packed[i, j], "int32") >> (2 * part) & 3
                sums[i, j] += weight * T.cast(x[4 * j + part], "int32")
        {reader}
        T.copy(total, Y)
    """
    params = f'A: T.Tensor((512,), "int8"), X: T.Tensor((16, 128), "uint8"), Y: T.Tensor(({extent},), "int32")'
    kernel = load_body(tmp_path, statements, params)
    assert "tl::dp4a(" in kernel.source
    a = RNG.integers(-128, 128, 512).astype(np.int8)
    x = RNG.integers(0, 256, (16, 128)).astype(np.uint8)
    products = (x[:, :, None] >> np.array([0, 2, 4, 6]) & 3).astype(int) * a.reshape(128, 4).astype(int)
    sums = products.sum(axis=-1)
    np.testing.assert_array_equal(kernel(a, x), sums.sum(axis=0) if "dim=0" in reader else sums.max(axis=1))


# Numbers of 4 bits and what they are worth.
_DECODED = {
    "int": ('T.cast(nibble - 8, "float16")', np.arange(16) - 8.0),
    "e2m1": (
        'T.reinterpret(T.cast((nibble & 8) << 12 | (nibble & 7) << 9, "uint16"), "float16") * 16384',
        np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]),
    ),
    "e2m1, in no table": (
        'T.reinterpret(T.cast((nibble & 8) << 12 | (nibble & 7) << 9, "uint16"), "float16") * T.cast(12296, "float16")',
        (np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6]) * 0.75048828125).astype(np.float16),
    ),
    "upper bytes": (
        'T.cast(T.cast((nibble & 8) << 8 | (nibble & 1) << 9, "uint16"), "float16")',
        np.array([(x & 8) << 8 | (x & 1) << 9 for x in range(16)], float),
    ),
    "other bits": (
        'T.cast(T.cast((nibble & 5) << 3 | (nibble & 2) << 6, "uint16"), "float16")',
        np.array([(x & 5) << 3 | (x & 2) << 6 for x in range(16)], float),
    ),
}


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("decoded", _DECODED)
@pytest.mark.parametrize("threads", [64, 128])
def test_numbers_of_4_bits_become_a_register_operand(threads: int, decoded: str, tmp_path: Path) -> None:
    """A scale for 32 columns or 64, from memory or from registers."""
    value, worth = _DECODED[decoded]
    statements = f"""
        P = T.alloc_shared((32, 32), "uint8")
        B = T.alloc_shared((64, 32), "float16")
        first = T.alloc_fragment((32,), "float16")
        W = T.alloc_fragment((32, 64), "float16")
        C = T.alloc_fragment((32, 32), "float32")
        T.copy(X, P)
        T.copy(A, B)
        T.copy(S[:, 0], first)
        for i, j in T.Parallel(32, 64):
            nibble = T.cast(P[i, j // 2], "int32") >> (4 * (j % 2)) & 15
            W[i, j] = {value} * T.if_then_else(j < 32, first[i], S[i, j // 32])
        T.clear(C)
        T.gemm(W, B, C)
        T.copy(C, Y)
    """
    params = (
        'X: T.Tensor((32, 32), "uint8"), S: T.Tensor((32, 2), "float16"), '
        'A: T.Tensor((64, 32), "float16"), Y: T.Tensor((32, 32), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, threads=threads)
    assert "tl::parallel<8>(W_layout{}" in kernel.source
    x = RNG.integers(0, 256, (32, 32)).astype(np.uint8)
    s = RNG.integers(1, 4, (32, 2)).astype(np.float16)
    a = RNG.integers(-2, 3, (64, 32)).astype(np.float16)
    weights = worth.astype(float)[np.stack([x & 15, x >> 4], axis=-1).reshape(32, 64)] * np.repeat(
        s.astype(float), 32, axis=1
    )
    weights = weights.astype(np.float16).astype(float)
    np.testing.assert_array_equal(kernel(x, s, a), weights @ a.astype(float))


def test_parts_of_a_row_that_start_within_32_columns_are_taken_one_by_one(tmp_path: Path) -> None:
    statements = """
        P = T.alloc_shared((32, 48), "uint8")
        B = T.alloc_shared((64, 32), "float16")
        W = T.alloc_fragment((32, 64), "float16")
        C = T.alloc_fragment((32, 32), "float32")
        T.copy(X, P)
        T.copy(A, B)
        for i, j in T.Parallel(32, 64):
            W[i, j] = T.cast(T.cast(P[i, (16 + j) // 2], "int32") >> (4 * (j % 2)) & 15, "float16")
        T.clear(C)
        T.gemm(W, B, C)
        T.copy(C, Y)
    """
    params = 'X: T.Tensor((32, 48), "uint8"), A: T.Tensor((64, 32), "float16"), Y: T.Tensor((32, 32), "float32")'
    kernel = load_body(tmp_path, statements, params)
    assert "tl::parallel<8>" not in kernel.source
    x = RNG.integers(0, 256, (32, 48)).astype(np.uint8)
    a = RNG.integers(-2, 3, (64, 32)).astype(np.float16)
    weights = np.stack([x & 15, x >> 4], axis=-1).reshape(32, 96)[:, 16:80].astype(float)
    np.testing.assert_array_equal(kernel(x, a), weights @ a.astype(float))


_SUMS = """
    x = T.alloc_shared((512,), "float16")
    P = T.alloc_shared((8, 256), "uint8")
    sums = T.alloc_fragment((8, 512), "{sums}")
    total = T.alloc_fragment((8,), "float32")
    T.copy(A, x)
    T.copy(X, P)
    T.clear(sums)
    for i, j in T.Parallel(8, 512):
        nibble = T.cast(P[i, j // 2], "int32") >> (4 * (j % 2)) & 15
        sums[i, j] += {value}
    {reader}
    T.copy(total, Y)
"""
_TOTAL = "T.reduce_sum(sums, total, dim=1)"


def _sums(
    folder: Path, sums: str, value: str, reader: str
) -> tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(text, what it gives, x, the numbers, zeros)."""
    params = (
        'A: T.Tensor((512,), "float16"), X: T.Tensor((8, 256), "uint8"), Z: T.Tensor((8, 16), "uint8"), '
        'Y: T.Tensor((8,), "float32")'
    )
    kernel = load_body(folder, _SUMS.format(sums=sums, value=value, reader=reader), params, threads=64)
    a = RNG.integers(-3, 4, 512).astype(np.float16)
    x = RNG.integers(0, 256, (8, 256)).astype(np.uint8)
    z = RNG.integers(0, 256, (8, 16)).astype(np.uint8)
    return (
        kernel.source,
        kernel(a, x, z),
        a.astype(float),
        np.stack([x & 15, x >> 4], axis=-1).reshape(8, 512).astype(float),
        z,
    )


@pytest.mark.nightly
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("less", ["8", 'T.cast(Z[i, j // 32], "int32")'])
def test_numbers_that_are_only_summed_stay_as_they_come_apart(dtype: str, less: str, tmp_path: Path) -> None:
    value = f'T.cast(T.cast(nibble - {less}, "float16") * x[j], "{dtype}")'
    text, found, a, numbers, z = _sums(tmp_path, dtype, value, _TOTAL)
    assert "tl::unpack_uint4_interleaved(" in text
    assert "tl::interleaved(x(j))" in text
    zeros = 8 if less == "8" else np.repeat(z, 32, axis=1).astype(float)
    np.testing.assert_array_equal(found, ((numbers - zeros) * a).sum(axis=1))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(
    ("value", "reader"),
    [
        ("T.cast(nibble, 'float32') * T.cast(j, 'float32')", _TOTAL),
        ("T.cast(nibble, 'float32') * T.cast(x[j], 'float32')", "T.reduce_max(sums, total, dim=1)"),
        (
            "T.cast(nibble, 'float32') * T.cast(x[j], 'float32')",
            _TOTAL + "\n    T.clear(total)\n    T.reduce_max(sums, total, dim=1)",
        ),
    ],
)
def test_numbers_whose_place_matters_stay_in_order(value: str, reader: str, tmp_path: Path) -> None:
    text, found, a, numbers, _ = _sums(tmp_path, "float32", value, reader)
    assert "tl::unpack_uint4_interleaved(" not in text
    terms = numbers * (np.arange(512.0) if "(j, " in value else a)
    np.testing.assert_array_equal(found, terms.max(axis=1) if "max" in reader else terms.sum(axis=1))


_GROUPS = """
    x = T.alloc_shared((1024,), "float16")
    P = T.alloc_shared((8, 512), "uint8")
    terms = T.alloc_fragment((8, 32, 32), "float16")
    of_group = T.alloc_fragment((8, 32), "float16")
    T.copy(A, x)
    T.copy(X, P)
    for i, c, j in T.Parallel(8, 32, 32):
        nibble = T.cast(P[i, (c * 32 + j) // 2], "int32") >> (4 * (j % 2)) & 15
        terms[i, c, j] = T.cast(nibble - T.cast(Z[i, c], "int32"), "float16") * x[c * 32 + j]
    T.reduce_{reduction}(terms, of_group, dim=2)
    T.copy(of_group, Y)
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("reduction", ["sum", "max"])
def test_products_of_a_group_stay_in_their_thread(reduction: str, tmp_path: Path) -> None:
    """16 bytes of numbers and 64 of x a thread: they meet in no bank, and sums take the numbers as they come apart."""
    params = (
        'A: T.Tensor((1024,), "float16"), X: T.Tensor((8, 512), "uint8"), Z: T.Tensor((8, 32), "uint8"), '
        'Y: T.Tensor((8, 32), "float16")'
    )
    kernel = load_body(tmp_path, _GROUPS.format(reduction=reduction), params, threads=64)
    assert "SharedTile1D<tl::half, 1024, tl::Swizzle128B> x;" in kernel.source
    assert ("tl::unpack_uint4_interleaved(" in kernel.source) == (reduction == "sum")
    a = RNG.integers(-3, 4, 1024).astype(np.float16)
    x = RNG.integers(0, 256, (8, 512)).astype(np.uint8)
    z = RNG.integers(0, 16, (8, 32)).astype(np.uint8)
    terms = np.stack([x & 15, x >> 4], axis=-1).reshape(8, 32, 32) - z[..., None].astype(float)
    terms *= a.reshape(32, 32).astype(float)
    np.testing.assert_array_equal(kernel(a, x, z), terms.sum(axis=2) if reduction == "sum" else terms.max(axis=2))
    assert kernel.report is not None
    assert all(access.worst_ways == 1 for access in kernel.report.shared if "parallel" in access.place.text)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("columns", [8, 48, 320])
def test_sums_of_halves_are_made_of_pairs(columns: int, tmp_path: Path) -> None:
    """Rows that leave lanes idle, and rows of several packets a lane; the half sums are exact here."""
    statements = f"""
        tile = T.alloc_fragment((16, {columns}), "float16")
        sums = T.alloc_fragment((16,), "float16")
        T.copy(X, tile)
        T.reduce_sum(tile, sums, dim=1)
        T.copy(sums, Y)
    """
    params = f'X: T.Tensor((16, {columns}), "float16"), Y: T.Tensor((16,), "float16")'
    kernel = load_body(tmp_path, statements, params, threads=64)
    x = RNG.integers(-3, 4, (16, columns)).astype(np.float16)
    np.testing.assert_array_equal(kernel(x), x.astype(float).sum(axis=1))
