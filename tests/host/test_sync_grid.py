"""T.sync_grid: a kernel that ends there, and one that goes on."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import CheckError, Kernel

SYNC_GRID = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def normed(M, N, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), sums: T.Tensor((M,), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            first = bx * block
            last = T.ceildiv(M, block) - 1 - bx
            scale = T.alloc_var("float32", 2.0)
            tile = T.alloc_fragment((block, 64), "float32")
            result = T.alloc_fragment((block,), "float32")
            T.clear(result)
            for k in T.serial(T.ceildiv(N, 64)):
                T.copy(A[first, k * 64], tile)
                T.reduce_sum(tile, result, dim=1, clear=False)
            T.copy(result, sums[first])
            # every sum is there
            {barrier}
            T.clear(result)
            T.copy(sums[last * block], result)
            for k in T.serial(T.ceildiv(N, 64)):
                T.copy(A[last * block, k * 64], tile)
                for i, j in T.Parallel(block, 64):
                    tile[i, j] = tile[i, j] * scale + result[i]
                T.copy(tile, B[last * block, k * 64])
    return main
"""


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_after_a_barrier_of_the_grid_all_blocks_see_what_all_wrote(target: str, tmp_path: Path) -> None:
    kernel = _load(tmp_path, SYNC_GRID.format(barrier="T.sync_grid()"), target)
    rng = np.random.default_rng(0)
    for m, n in ((200, 100), (64, 64), (1, 3)):
        a, sums = rng.integers(-9, 10, (m, n)).astype(np.float32), np.zeros(m, np.float32)
        expected = a.sum(axis=1)
        np.testing.assert_array_equal(kernel(a, sums), a * 2 + expected[:, None])
        np.testing.assert_array_equal(sums, expected)
    assert kernel.source.count("__global__") == 2


def test_the_engine_finds_a_barrier_of_the_grid_that_is_left_out(tmp_path: Path) -> None:
    kernel = _load(tmp_path, SYNC_GRID.format(barrier="pass"), "cuda:sm_80")
    with pytest.raises(CheckError, match="race|uninitialised"):
        kernel(np.ones((200, 100), np.float32), np.zeros(200, np.float32))


def _load(folder: Path, text: str, target: str) -> Kernel:
    path = folder / "normed.py"
    path.write_text(text)
    return tile2cu.load(path, device="cpu", target=target, check=True)
