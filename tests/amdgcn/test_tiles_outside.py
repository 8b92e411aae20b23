"""Tiles far outside of their tensors, in the style ck: its 32-bit offsets must not wrap to elements of the tensor."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import Kernel

pytestmark = [pytest.mark.needs("ck"), pytest.mark.nightly]

COPIES = """
import tilelang
import tilelang.language as T


@tilelang.jit
def moved(M, N, P, Q):
    @T.prim_func
    def main(
        A: T.Tensor((M, N), "float16"), C: T.Tensor((P, Q), "float16"), D: T.Tensor((P, Q), "float16"),
        E: T.Tensor((Q,), "float16"), at: T.Tensor((2,), "int32"), to_row: T.int32, to_column: T.int32,
    ):
        with T.Kernel(1, threads=128) as bx:
            tile = T.alloc_fragment((64, 32), "float16")
            shared = T.alloc_shared((64, 32), "float16")
            odd = T.alloc_fragment((40,), "float16")
            row = at[0]
            column = at[1]
            T.copy(A[row, column], tile)
            T.copy(A[row, column], shared)
            T.copy(A[3, column], odd)
            T.copy(tile, C[to_row, to_column])
            T.copy(odd, E[to_column])
            for i, j in T.Parallel(64, 32):
                D[to_row + i, to_column + j] = shared[i, j]

    return main
"""
PRODUCT = """
import tilelang
import tilelang.language as T


@tilelang.jit
def product(M, N, K):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((64, 64), "float32"),
        row: T.int32, column: T.int32, first: T.int32,
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[row, first + k * 32], A_shared)
                T.copy(B[first + k * 32, column], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[0, 0])

    return main
"""
FAR = (2**31 - 64, 2**31 - 1, 2**30, 2**24 + 8, 1000, -8, -200, -(2**30), -(2**31))


@pytest.mark.parametrize("style", ["ck", "tl"])
def test_no_element_of_them_is_copied(style: str, tmp_path: Path) -> None:
    """A table's starts, and an argument's, of rows and of columns, of loads and of stores.

    Also of a tile of 40 columns, whose threads have 64 places: the last ones are outside of the tile.
    """
    kernel = _loaded(COPIES, style, tmp_path)
    a = _integers(70, 40)
    for at in [(0, 0), (8, 8), *((far, 0) for far in FAR), *((8, far) for far in FAR), *((far, far) for far in FAR)]:
        for row, column, to_row, to_column in ((*at, 0, 0), (0, 0, *at)):
            c, d, e = (np.full(shape, -1, np.float16) for shape in ((72, 48), (72, 48), 48))
            kernel(a, c, d, e, np.array([row, column], np.int32), to_row, to_column)
            assert kernel.report is not None and kernel.report.is_clean, str(kernel.report)
            expected = _stored(_window(a, row, column, 64, 32), to_row, to_column, (72, 48))
            np.testing.assert_array_equal(c, expected, err_msg=f"{at}, {to_row}")
            np.testing.assert_array_equal(d, expected, err_msg=f"{at}, {to_row}")
            (expected,) = _stored(_window(a, 3, column, 1, 40), 0, to_column, (1, 48))
            np.testing.assert_array_equal(e, expected, err_msg=f"{at}, {to_row}")


@pytest.mark.parametrize("style", ["ck", "tl"])
def test_no_element_of_them_is_prefetched(style: str, tmp_path: Path) -> None:
    """Also of windows that move by a tile per iteration, where the first tile may be far outside and the next not."""
    kernel = _loaded(PRODUCT, style, tmp_path)
    a, b = _integers(70, 80), _integers(80, 72)
    for far in (0, 8, *FAR):
        for row, column, first in ((far, 0, 0), (0, far, 0), (0, 0, far), (far, far, far)):
            c = np.full((64, 64), -1, np.float32)
            kernel(a, b, c, row, column, first)
            assert kernel.report is not None and kernel.report.is_clean, str(kernel.report)
            expected = _window(a, row, first, 64, 96) @ _window(b, first, column, 96, 64)
            np.testing.assert_array_equal(c, expected, err_msg=f"{row}, {column}, {first}")


def _loaded(text: str, style: str, folder: Path) -> Kernel:
    (folder / "tiles.py").write_text(text, encoding="utf-8")
    return tile2cu.load(
        folder / "tiles.py", target="hip:gfx942", device="sim", style=style, check=True, options={}
    )  # fmt: skip


def _integers(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(1, 4, (rows, columns)).astype(np.float16)


def _window(matrix: np.ndarray, row: int, column: int, rows: int, columns: int) -> np.ndarray:
    """A window of a matrix, with zeros outside."""
    result = np.zeros((rows, columns))
    inside = [
        slice(max(0, -first), max(0, min(size, extent - first)))
        for first, size, extent in zip((row, column), result.shape, matrix.shape, strict=True)
    ]
    at = tuple(
        slice(part.start + first, max(part.start, part.stop) + first)
        for part, first in zip(inside, (row, column), strict=True)
    )
    if all(part.start < part.stop for part in inside):
        result[tuple(inside)] = matrix[at]
    return result


def _stored(tile: np.ndarray, row: int, column: int, shape: tuple[int, int]) -> np.ndarray:
    """-1, with the part of a tile at these coordinates that is inside."""
    inside = _window(np.ones(tile.shape), -row, -column, *shape) > 0
    return np.where(inside, _window(tile, -row, -column, *shape), -1)
