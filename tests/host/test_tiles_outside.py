"""Tiles that begin at negative coordinates, or so far behind a tensor that int holds no coordinate of their end."""

from pathlib import Path

import numpy as np
import pytest

from tests.differential.build import quick_load
from tile2cu.api import emit_text
from tile2cu.targets import find

_TEXT = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def rows(M, N, K):
    @T.prim_func
    def body(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16"),
        to: T.int32, start: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):
            A_shared = T.alloc_shared((128, 64), "float16")
            B_shared = T.alloc_shared((64, 128), "float16")
            C_local = T.alloc_fragment((128, 128), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[by * 128 + start, k * 64], A_shared)
                T.copy(B[k * 64, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 128 + to, bx * 128])
    return body


@tilelang.jit
def columns(M, N, K):
    @T.prim_func
    def body(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((N, M), "float16"),
        to: T.int32, start: T.int32,
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            C_local = T.alloc_fragment((64, 64), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=3):
                T.copy(A[by * 64, k * 64], A_shared)
                T.copy(B[k * 64, bx * 64 + start], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(64, 64):
                C[bx * 64 + to + j, by * 64 + i] = C_local[i, j]
    return body
"""
_MOST = 2**31 - 1
_AT = [(0, 0), (-64, 0), (-8, -8), (-200, -200), (64, 64), (_MOST - 127, 0), (_MOST - 63, _MOST - 63), (_MOST, _MOST)]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_no_row_of_them_is_stored_or_loaded(target: str, tmp_path: Path) -> None:
    """A tile that begins at 2^31 - 64 has boxes of 16 rows, and the coordinates of some wrap to negative ones."""
    (emitted,) = emit_text(Path("tiles.py"), kernel="rows", target=find(target), bindings={}, text=_TEXT)
    kernel = quick_load(emitted, tmp_path, ("round-robin",))
    if target == "cuda:sm_90a":
        assert (
            "if (tl::wrapping_add(by * 128, to) >= 0)" in kernel.source
            and "tl::tma_store_start(C_local" in kernel.source
        )
    a, b = _integers(120, 72), _integers(72, 136)
    for to, start in _AT:
        result = np.ones((120, 136), np.float16)
        kernel(a, b, result, to, start)
        product = (_shifted(a, start, 128) @ b.astype(np.float64)).astype(np.float16)
        np.testing.assert_array_equal(result, _stored(product, to, 120), err_msg=f"{to}, {start}")


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["cuda:sm_90a", "hip:gfx942"])
def test_no_column_of_them_is_loaded(target: str, tmp_path: Path) -> None:
    """The last row of a buffer for AMD's loads ends with the tensor's, also where a tile begins before it."""
    (emitted,) = emit_text(Path("tiles.py"), kernel="columns", target=find(target), bindings={}, text=_TEXT)
    kernel = quick_load(emitted, tmp_path, ("round-robin",))
    a, b = _integers(120, 72), _integers(72, 56)
    for to, start in _AT:
        start = start // 8 * 8
        result = np.ones((56, 120), np.float16)
        kernel(a, b, result, to, start)
        product = (a.astype(np.float64) @ _shifted(b.T, start, 64).T).T.astype(np.float16)
        np.testing.assert_array_equal(result, _stored(product, to, 56), err_msg=f"{to}, {start}")


def test_a_transpose_that_begins_outside_is_stored_by_tma_in_a_branch(tmp_path: Path) -> None:
    """All warps stage it, and wait until TMA has read it: there is no store that goes on behind the branch."""
    text = _TEXT.replace("C[bx * 64 + to + j, by * 64 + i]", "C[bx * 64 + to + j, by * 64 + start // 8 * 8 + i]")
    text = text.replace("B[k * 64, bx * 64 + start]", "B[k * 64, bx * 64]")
    (emitted,) = emit_text(Path("tiles.py"), kernel="columns", target=find("cuda:sm_90a"), bindings={}, text=text)
    kernel = quick_load(emitted, tmp_path, ("round-robin",))
    assert "tl::tma_store(tl::transposed(C_local), C_local_staging, C_map," in kernel.source
    a, b = _integers(64, 72), _integers(72, 64)
    product = (a.astype(np.float64) @ b.astype(np.float64)).T.astype(np.float16)
    for to, start in _AT:
        result = np.ones((64, 64), np.float16)
        kernel(a, b, result, to, start)
        by_columns = _stored(product.T, start // 8 * 8, 64).T
        np.testing.assert_array_equal(result, _stored(by_columns, to, 64), err_msg=f"{to}, {start}")


def _integers(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(rows).integers(-2, 3, (rows, columns)).astype(np.float16)


def _shifted(matrix: np.ndarray, start: int, rows: int) -> np.ndarray:
    """The rows from `start` on, with zeros for those that are outside."""
    at = range(start, start + rows)
    zeros = np.zeros(matrix.shape[1])
    return np.stack([matrix[row].astype(np.float64) if 0 <= row < len(matrix) else zeros for row in at])


def _stored(tile: np.ndarray, to: int, rows: int) -> np.ndarray:
    """Ones, with the rows of a tile from `to` on that are inside."""
    at = [(row, row - to) for row in range(rows) if 0 <= row - to < len(tile)]
    result = np.ones((rows, tile.shape[1]), np.float16)
    for row, of_tile in at:
        result[row] = tile[of_tile]
    return result
