"""Integers that overflow 32 bits: extents, indices of 64 bits, and values of vectorised loops."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import LaunchError

TARGETS = ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"]
EXTREME = (-(2**31), -(2**31) + 3, -1, 0, 5, 2**31 - 4, 2**31 - 1)

# Guards and ends of loops that promise that X is accessed in bounds, unless their own arithmetic overflows.
GUARDED = {
    "difference": "for i in T.Parallel(128):\n    if i < n - 5 and n - i < size + 6:\n        Y[i] = X[n - i - 6]",
    "sum": "for i in T.Parallel(128):\n    if n + i >= 0 and n + 7 < size - i + 7:\n        Y[i] = X[n + i]",
    "quotient": "for i in T.Parallel(128):\n    if m >= 0 and m < size:\n        Y[i] = X[m * 2**26 // 2**26]",
    "name": "e = n - 5\nfor i in T.Parallel(128):\n    if i < e and n - i < size + 6:\n        Y[i] = X[e - i - 1]",
    "arm": "for i in T.Parallel(128):\n    Y[i] = T.if_then_else(i < n - 5 and n - i < size + 6, X[n - i - 6], 1.0)",
}


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
@pytest.mark.parametrize("name", GUARDED)
def test_no_guard_that_overflows_is_believed(name: str, target: str, tmp_path: Path) -> None:
    params = 'X: T.Tensor((size,), "float32"), n: T.int32, m: T.int32, Y: T.Tensor((128,), "float32")'
    head = 'size = T.dynamic("size")\n'
    kernel = load_body(tmp_path, GUARDED[name], params, head=head, target=target)
    for n, m, size in product(EXTREME, (-1, 40, 7), (0, 128)):
        kernel(np.ones(size, np.float32), n, m)  # raises where an access is out of bounds


def test_results_of_guards_that_do_not_overflow(tmp_path: Path) -> None:
    params = 'X: T.Tensor((size,), "float32"), n: T.int32, m: T.int32, Y: T.Tensor((128,), "float32")'
    kernel = load_body(tmp_path, GUARDED["arm"], params, head='size = T.dynamic("size")\n')
    x = np.arange(200, dtype=np.float32)
    for n in (-7, 0, 5, 6, 100, 200):
        expected = [x[n - i - 6] if i < n - 5 else 1 for i in range(128)]
        np.testing.assert_array_equal(kernel(x, n, 0), expected)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_an_index_of_64_bits_that_no_int_holds_is_out_of_bounds(target: str, tmp_path: Path) -> None:
    params = (
        'X: T.Tensor((256,), "float32"), at: T.Tensor((128,), "int64"), Z: T.Tensor((128,), "float32"), '
        'Y: T.Tensor((3, 128), "float32")'
    )
    statements = """
    tile = T.alloc_fragment((128,), "float32")
    for i in T.Parallel(128):
        Y[0, i] = X[at[i]]
    for i in T.Parallel(128):
        Y[1, i] = X[at[1] + i]
    for i in T.Parallel(128):
        Z[at[i] + 1] = 1.0
    T.copy(X[at[2]], tile)
    T.copy(tile, Y[2, 0])
    """
    kernel = load_body(tmp_path, statements, params, target=target)
    x, z = np.arange(1, 257, dtype=np.float32), np.zeros(128, np.float32)
    at = np.full(128, -(2**63), np.int64)
    at[:4] = 2**32 + 3, 2**40 + 8, 2**33, 5
    y = kernel(x, at, z)
    assert y[0, 3] == 6 and np.count_nonzero(y) == 1
    assert z[6] == 1 and np.count_nonzero(z) == 1


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_values_of_vectorised_loops_have_the_type_of_their_arithmetic(target: str, tmp_path: Path) -> None:
    params = (
        'wide: T.Tensor((4,), "int64"), bits: T.Tensor((4,), "uint32"), '
        'U: T.Tensor((4, 256), "uint32"), F: T.Tensor((4, 256), "float32"), Y: T.Tensor((4, 256), "int64")'
    )
    statements = """
    for i, j in T.Parallel(4, 256):
        Y[i, j] = wide[i] + j
    for i, j in T.Parallel(4, 256):
        U[i, j] = (bits[i] + T.cast(j, "uint32")) // 2
    for i, j in T.Parallel(4, 256):
        F[i, j] = T.cast(j - wide[i], "float32")
    """
    kernel = load_body(tmp_path, statements, params, target=target)
    wide, bits = np.array([2**40, 1, -(2**50), 2**31 - 1]), np.array([2**31 + 1, 1, 2**32 - 1000, 5], np.uint32)
    halves, floats, j = np.zeros((4, 256), np.uint32), np.zeros((4, 256), np.float32), np.arange(256)
    np.testing.assert_array_equal(kernel(wide, bits, halves, floats), wide[:, None] + j)
    np.testing.assert_array_equal(halves, (bits[:, None] + j.astype(np.uint32)) // 2)
    np.testing.assert_array_equal(floats, (j - wide[:, None]).astype(np.float32))


@pytest.mark.parametrize("target", TARGETS)
def test_extents_that_overflow_are_rejected(target: str, tmp_path: Path) -> None:
    head = 'M, N = T.dynamic("M, N")\n'
    params = 'X: T.Tensor((M, N), "uint8"), Y: T.Tensor((128,), "float32")'
    statements = "flat = T.reshape(X, (M * N,))\nfor i in T.Parallel(128):\n    Y[i] = flat[i] * 2"
    kernel = load_body(tmp_path, statements, params, head=head, target=target, check=False)
    np.testing.assert_array_equal(kernel(np.ones((16, 8), np.uint8)), np.full(128, 2))
    for rows, columns in ((2**16, 2**16), (2**16, 2**15)):
        with pytest.raises(LaunchError, match="TL_INVALID_SIZE"):
            kernel(np.empty((rows, columns), np.uint8))  # memory that nothing touches
