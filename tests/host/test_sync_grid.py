"""T.sync_grid: a kernel that ends there, and one that goes on."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tile2cu_runtime import CheckError, Kernel, LaunchError

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


@pytest.mark.sweep(cases=1)
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
    path.write_text(text, encoding="utf-8")
    return tile2cu.load(path, device="cpu", target=target, check=True)


ITERATED = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def diffused(N, turns, block=32):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
            own = T.alloc_fragment((block,), "float32")
            other = T.alloc_global((N,), "float32")
            T.copy(A[bx * block], own)
            for turn in T.serial(turns):
                T.copy(own, other[bx * block])
                {barrier}
                for i in T.Parallel(block):
                    at = bx * block + i
                    own[i] = other[(at + 1) % N] + T.if_then_else(turn % 2 == 0, own[i], other[(at + N - 1) % N])
                {barrier}
            T.copy(own, B[bx * block])
    return main
"""


def diffused(a: np.ndarray, turns: int) -> np.ndarray:
    for turn in range(turns):
        a = np.roll(a, -1) + (a if turn % 2 == 0 else np.roll(a, 1))
    return a


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
def test_a_barrier_in_a_loop_keeps_registers(target: str, tmp_path: Path) -> None:
    """Blocks of 32 of a ragged ring; each turn reads what the neighbours wrote in it."""
    kernel = _load(tmp_path, ITERATED.format(barrier="T.sync_grid()"), target)
    assert kernel.source.count("__global__") == 1 and kernel.source.count("tl::sync_grid();") == 2
    rng = np.random.default_rng(1)
    for n, turns in ((100, 5), (33, 2), (7, 1), (64, 0)):
        a = rng.integers(-9, 10, n).astype(np.float32)
        np.testing.assert_array_equal(kernel(a, turns=turns), diffused(a, turns))


def test_the_engine_finds_the_barrier_that_a_loop_lacks(tmp_path: Path) -> None:
    text = ITERATED.format(barrier="T.sync_grid()")
    last = text.rindex("T.sync_grid()")
    kernel = _load(tmp_path, text[:last] + "pass" + text[last + len("T.sync_grid()") :], "cuda:sm_80")
    with pytest.raises(CheckError, match="race between blocks"):
        kernel(np.ones(100, np.float32), turns=3)


BRANCH = """
import tilelang
import tilelang.language as T


@tilelang.jit
def swapped(N):
    @T.prim_func
    def main(A: T.Tensor((N, 64), "float32"), flags: T.Tensor((N,), "int32")):
        with T.Kernel(N, threads=64) as bx:
            row = T.alloc_fragment((64,), "float32")
            T.copy(A[N - 1 - bx, 0], row)
            if flags[{at}] > 0:
                T.sync_grid()
                T.copy(row, A[bx, 0])
    return main
"""


def test_a_barrier_in_a_branch_that_all_blocks_take(tmp_path: Path) -> None:
    kernel = _load(tmp_path, BRANCH.format(at="0"), "cuda:sm_80")
    a = np.random.default_rng(2).integers(-9, 10, (5, 64)).astype(np.float32)
    for flag in (0, 1):
        given, flags = a.copy(), np.full(5, flag, np.int32)
        kernel(given, flags)
        np.testing.assert_array_equal(given, a[::-1] if flag else a)


def test_blocks_that_never_come_to_a_barrier_are_found(tmp_path: Path) -> None:
    kernel = _load(tmp_path, BRANCH.format(at="bx"), "cuda:sm_80")
    with pytest.raises(CheckError, match="3 blocks wait at the grid barrier at .*, but block 1 has exited"):
        kernel(np.ones((5, 64), np.float32), np.array([1, 0, 1, 0, 1], np.int32))


def test_more_blocks_than_there_are_at_once_are_refused(tmp_path: Path) -> None:
    kernel = _load(tmp_path, BRANCH.format(at="0"), "cuda:sm_80")
    kernel(np.ones((5, 64), np.float32), np.ones(5, np.int32))
    with pytest.raises(LaunchError, match="TL_NOT_SUPPORTED"):
        kernel(np.ones((257, 64), np.float32), np.ones(257, np.int32))


def test_copies_of_a_loop_with_a_barrier_do_not_run_ahead_of_it(tmp_path: Path) -> None:
    text = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scanned(N):
    @T.prim_func
    def main(A: T.Tensor((4, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            last = T.ceildiv(N, 64) - 1 - bx
            S = T.alloc_shared((64,), "float32")
            for row in T.Pipelined(3, num_stages=2):
                T.copy(A[row, bx * 64], S)
                for i in T.Parallel(64):
                    A[row + 1, last * 64 + i] = A[row + 1, last * 64 + i] + S[i]
                T.sync_grid()
    return main
"""
    kernel = _load(tmp_path, text, "cuda:sm_90a")
    a = np.random.default_rng(3).integers(-9, 10, (4, 192)).astype(np.float32)
    given = a.copy()
    kernel(given)
    expected = a.reshape(4, 3, 64)
    for row in range(3):
        expected[row + 1] += expected[row, ::-1]
    np.testing.assert_array_equal(given, expected.reshape(4, 192))
