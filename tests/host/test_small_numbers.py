"""Numbers of 4 and 2 bits in bytes: decoded eight at a time, multiplied four at a time, and as they are elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(4)


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
    assert "tl::nibbles(" in kernel.source
    assert "tl::parallel_into<" in kernel.source
    x = RNG.integers(0, 256, (64, 32)).astype(np.uint8)
    expected = np.stack([x & 15, x >> 4], axis=-1).reshape(64, 64).astype(int) - less
    np.testing.assert_array_equal(kernel(x), expected.astype(dtype))


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
    assert "tl::dot_4(" in kernel.source
    a = RNG.integers(-128, 128, 512).astype(np.int8)
    x = RNG.integers(0, 256, (16, 128)).astype(np.uint8)
    weights = (x[:, :, None] >> np.array([0, 2, 4, 6]) & 3).astype(int) - less
    np.testing.assert_array_equal(kernel(a, x), (weights * a.reshape(128, 4).astype(int)).sum(axis=-1))


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
    assert "tl::dot_4(" not in kernel.source
    a = RNG.integers(-128, 128, 512).astype(np.int8)
    x = RNG.integers(0, 256, (16, 128)).astype(np.uint8)
    part = np.arange(4)
    places = step * np.arange(128)[:, None] + first + turn * part
    weights = (x[:, :, None] >> 2 * part & 3).astype(int)
    np.testing.assert_array_equal(kernel(a, x), (weights * a[places].astype(int)).sum(axis=-1))
