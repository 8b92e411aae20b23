"""Rows that are no power of two wide: spread over the threads with few idle, 16 bytes each, and right."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body

RNG = np.random.default_rng(4)


@pytest.mark.parametrize(
    ("channels", "grid"),
    [(160, "tl::Shape<6, 20>, 8"), (320, "tl::Shape<3, 40>, 8"), (640, "tl::Shape<8, 16>, 8")],
)
def test_channels(channels: int, grid: str, tmp_path: Path) -> None:
    statements = f"""
        L = T.alloc_fragment((24, {channels}), "float16")
        R = T.alloc_fragment((24, {channels}), "float32")
        cols = T.alloc_fragment(({channels},), "float32")
        T.copy(X[bx * 24, 0], L)
        for i, j in T.Parallel(24, {channels}):
            R[i, j] = L[i, j] * 2.0
        T.reduce_sum(R, cols, dim=0)
        for i, j in T.Parallel(24, {channels}):
            R[i, j] = R[i, j] + cols[j]
        T.copy(R, Y[bx * 24, 0])
        for j in T.Parallel({channels}):
            Z[bx, j] = cols[j]
    """
    params = (
        f'X: T.Tensor((M, {channels}), "float16"), Z: T.Tensor((3, {channels}), "float32"), '
        f'Y: T.Tensor((M, {channels}), "float32")'
    )
    kernel = load_body(tmp_path, statements, params, grid="T.ceildiv(M, 24)", arguments="M")
    assert grid in kernel.source
    x = RNG.integers(-4, 5, (60, channels)).astype(np.float16)
    z = np.zeros((3, channels), np.float32)
    y = kernel(x, z)
    padded = np.concatenate([2 * x.astype(np.float64), np.zeros((12, channels))]).reshape(3, 24, channels)
    np.testing.assert_array_equal(z, padded.sum(axis=1))
    np.testing.assert_array_equal(y, (padded + padded.sum(axis=1, keepdims=True)).reshape(72, channels)[:60])


def test_packets_of_shared_rows_start_at_multiples_of_their_width(tmp_path: Path) -> None:
    statements = """
        S = T.alloc_shared((32, 68), "float32")
        narrow = T.alloc_shared((32, 65), "float32")
        sums = T.alloc_fragment((64,), "float32")
        T.copy(X, S)
        T.clear(sums)
        for i, j in T.Parallel(32, 64):
            narrow[i, j] = S[i, j + 1] + S[i, j + 4]
        for i, j in T.Parallel(1, 64):
            sums[j] += narrow[i + 3, j] * 2.0
        for i, j in T.Parallel(32, 64):
            Y[i, j] = narrow[i, j] + sums[j]
    """
    params = 'X: T.Tensor((32, 68), "float32"), Y: T.Tensor((32, 64), "float32")'
    x = RNG.integers(-4, 5, (32, 68)).astype(np.float32)
    narrow = x[:, 1:65] + x[:, 4:68]
    np.testing.assert_array_equal(load_body(tmp_path, statements, params)(x), narrow + 2 * narrow[3])
