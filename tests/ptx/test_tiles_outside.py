"""TMA stores of tiles that begin at negative coordinates, or that end where int has no coordinate of some boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.ptx.test_cute import HOPPER

pytestmark = pytest.mark.needs("cutlass", "nvcc")

TEXT = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def product(M, N, K, P, Q):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((P, Q), "float16"),
        row: T.int32, vector: T.int32,
    ):
        with T.Kernel(1, threads=128) as bx:
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 128), "float16")
            C_local = T.alloc_fragment((64, 128), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=2):
                T.copy(A[0, k * 64], A_shared)
                T.copy(B[k * 64, 0], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            {store}

    return main
"""
ROWS = "T.copy(C_local, C[row, vector * 8])"
COLUMNS = "for i, j in T.Parallel(64, 128): C[row + j, vector * 8 + i] = C_local[i, j]"
END = 2**31
AT = [(0, 0), (8, 8), (-8, 0), (0, -8), (END - 40, 0), (END - 1, 8), (0, END - 64), (8, END - 8), (END - 48, END - 64)]


def at(tile: np.ndarray, row: int, column: int, shape: tuple[int, int]) -> np.ndarray:
    """-1, with the part of the tile that is inside."""
    wanted = np.full(shape, -1.0)
    places = [np.arange(extent) + start for extent, start in zip(tile.shape, (row, column), strict=True)]
    inside = [(place >= 0) & (place < extent) for place, extent in zip(places, shape, strict=True)]
    wanted[np.ix_(*(place[kept] for place, kept in zip(places, inside, strict=True)))] = tile[np.ix_(*inside)]
    return wanted


@pytest.mark.nightly
@pytest.mark.parametrize("store", [ROWS, COLUMNS], ids=["rows", "columns"])
def test_boxes_without_coordinates_are_not_stored(store: str, tmp_path: Path) -> None:
    """TMA stores boxes of 16 rows and 64 columns: those behind the first may be at coordinates that wrap."""
    (tmp_path / "product.py").write_text(TEXT.replace("{store}", store), encoding="utf-8")
    kernel = tile2cu.load(tmp_path / "product.py", device="ptx", target=HOPPER, style="cute")
    assert (
        "if (row >= 0 && tl::wrapping_multiply(vector, 8) >= 0) {" in kernel.source
        and "    tl::tma_store" in kernel.source
    )
    a, b = (np.random.default_rng(n).integers(1, 4, (64, n)).astype(np.float16) for n in (64, 128))
    product = a.astype(float) @ b.astype(float)
    tile = product if store == ROWS else product.T
    for row, column in AT:
        result = np.full((136, 136), -1, np.float16)
        kernel(a, b, result, row, column // 8)
        np.testing.assert_array_equal(result, at(tile, row, column, result.shape), err_msg=f"{row}, {column}")
