"""T.copy into a private array: every thread has all elements, so that branches on them do not diverge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu

# `k` is the name that the loop of the copy would have: it may not hide the number.
SCATTER = """
import tilelang
import tilelang.language as T

@tilelang.jit
def scatter(n, k, h=128):
    @T.prim_func
    def main(X: T.Tensor((n, h), "float32"), at: T.Tensor((n, k), "int32"), Y: T.Tensor((n * k, h), "float32")):
        with T.Kernel(n, threads=64) as bx:
            place = T.alloc_local((k,), "int32")
            row = T.alloc_fragment((h,), "float32")
            T.copy(at[bx, 0], place)
            T.copy(X[bx, :], row)
            for j in T.serial(k):
                if place[j] >= 0:
                    T.copy(row, Y[place[j], :])
    return main
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "hip:gfx942"])
def test_rows_are_scattered(target: str, tmp_path: Path) -> None:
    path = tmp_path / "scatter.py"
    path.write_text(SCATTER, encoding="utf-8")
    kernel = tile2cu.load(path, target=target, device="cpu", check=True, k=4)
    rng = np.random.default_rng(7)
    x, places = rng.standard_normal((5, 128)).astype(np.float32), rng.permutation(20).astype(np.int32)
    places[::3] = -1
    y, expected = np.zeros((20, 128), np.float32), np.zeros((20, 128), np.float32)
    for row, place in enumerate(places):
        if place >= 0:
            expected[place] = x[row // 4]
    kernel(x, places.reshape(5, 4), y)
    np.testing.assert_array_equal(y, expected)
