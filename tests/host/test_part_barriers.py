"""Barriers in branches on the thread: of whole warps, of the lanes of one warp, or of the block between its parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu

RNG = np.random.default_rng(20261126)

# Each thread adds what its neighbour in the branch wrote, in rounds: a barrier per round, for these threads only.
NEIGHBOURS = """
import tilelang.language as T

@T.prim_func
def neighbours(X: T.Tensor((256,), "float32"), Y: T.Tensor((256,), "float32")):
    with T.Kernel(1, threads=256):
        S = T.alloc_shared((256,), "float32")
        t = T.get_thread_binding()
        S[t] = X[t]
        if {condition}:
            {arm}
        {orelse}
        Y[t] = S[255 - t]
"""
ROUNDS = """for r in T.serial(3):
                {first}value = T.alloc_var("float32")
                {first}value = S[t] + S[{first} + (t - {first} + 1) % {count}]
                {first}S[t] = {first}value"""


def rounds(first: int, count: int) -> str:
    """The statements of an arm that threads first .. first + count take."""
    return ROUNDS.replace("{first}value", f"value{first}").replace("{first}S", "S").format(first=first, count=count)


def expected(x: np.ndarray, *arms: tuple[int, int]) -> np.ndarray:
    s = x.copy()
    for first, count in arms:
        part = s[first : first + count]
        for _ in range(3):
            part[:] = part + np.roll(part, -1)
    return s[::-1]


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a"])
@pytest.mark.parametrize(
    ("condition", "arms", "call"),
    [
        ("t < 128", ((0, 128),), "tl::barrier_sync(15, 128)"),
        ("t < 128", ((0, 128), (128, 128)), "tl::barrier_sync(14, 128)"),
        ("t >= 192", ((192, 64),), "tl::barrier_sync(15, 64)"),
        ("t < 8", ((0, 8),), "tl::sync_warp(0xffu)"),
    ],
    ids=["half", "both arms", "last warps", "lanes"],
)
def test_threads_of_a_branch_synchronise(
    target: str, condition: str, arms: tuple[tuple[int, int], ...], call: str, tmp_path: Path
) -> None:
    path = tmp_path / "neighbours.py"
    orelse = "else:\n            " + rounds(*arms[1]) if len(arms) > 1 else ""
    path.write_text(NEIGHBOURS.format(condition=condition, arm=rounds(*arms[0]), orelse=orelse), encoding="utf-8")
    kernel = tile2cu.load(path, target=target, device="cpu", check=True)
    assert call in kernel.source
    x, y = RNG.integers(-9, 10, 256).astype(np.float32), np.zeros(256, np.float32)
    kernel(x, y)  # the engine reports a race where a barrier is missing, or one at which not all threads arrive
    np.testing.assert_array_equal(y, expected(x, *arms))


def test_lanes_of_a_wave_synchronise_on_amd(tmp_path: Path) -> None:
    path = tmp_path / "neighbours.py"
    path.write_text(NEIGHBOURS.format(condition="t < 40", arm=rounds(0, 40), orelse=""), encoding="utf-8")
    kernel = tile2cu.load(path, target="hip:gfx942", device="cpu", check=True)
    x, y = RNG.integers(-9, 10, 256).astype(np.float32), np.zeros(256, np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, expected(x, (0, 40)))


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize(
    ("target", "condition", "arms"),
    [
        ("cuda:sm_80", "t < 40", ((0, 40),)),
        ("cuda:sm_80", "t < 40", ((0, 40), (40, 216))),
        ("hip:gfx942", "t < 128", ((0, 128),)),
        ("hip:gfx942", "t < 128", ((0, 128), (128, 128))),
        ("cuda:sm_80", "Z[t] > 0", ((0, 40),)),
    ],
    ids=["parts of warps", "both arms", "on AMD", "both arms on AMD", "a condition in memory"],
)
def test_branches_of_other_threads_are_split(
    target: str, condition: str, arms: tuple[tuple[int, int], ...], tmp_path: Path
) -> None:
    path = tmp_path / "neighbours.py"
    orelse = "else:\n            " + rounds(*arms[1]) if len(arms) > 1 else ""
    text = NEIGHBOURS.replace("X: T", 'Z: T.Tensor((256,), "int32"), X: T')
    path.write_text(text.format(condition=condition, arm=rounds(*arms[0]), orelse=orelse), encoding="utf-8")
    kernel = tile2cu.load(path, target=target, device="cpu", check=True)
    x, y = RNG.integers(-9, 10, 256).astype(np.float32), np.zeros(256, np.float32)
    kernel((np.arange(256) < 40).astype(np.int32), x, y)
    np.testing.assert_array_equal(y, expected(x, *arms))


# Sorting by counting: each of the first `workers` threads has a row of its own, but which element of it is data.
COUNTED = """
import tilelang.language as T

@T.prim_func
def counted(keys: T.Tensor((N,), "int32"), at: T.Tensor((N,), "int32")):
    with T.Kernel(1, threads=128):
        counts = T.alloc_shared((40 * 9 + 9,), "int32")
        t = T.get_thread_binding()
        if t < 40:
            for e in T.serial(9):
                counts[t * 9 + e] = 0
            for i in T.serial(T.ceildiv(N, 40)):
                if t + i * 40 < N:
                    key = keys[t + i * 40]
                    if key >= 0:
                        seen = counts[t * 9 + key]
                        rank = seen * 40
                        at[t + i * 40] = rank + t
                        counts[t * 9 + key] = seen + 1
                    else:
                        at[t + i * 40] = -1
"""


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_values_of_a_branch_that_is_split_are_kept(target: str, tmp_path: Path) -> None:
    path = tmp_path / "counted.py"
    path.write_text(COUNTED.replace("N", "1000"), encoding="utf-8")
    kernel = tile2cu.load(path, target=target, device="cpu", check=True)
    keys, at = RNG.integers(-2, 9, 1000).astype(np.int32), np.zeros(1000, np.int32)
    kernel(keys, at)
    for lane in range(40):
        mine = keys[lane::40]
        ranks = [np.count_nonzero(mine[:place] == key) for place, key in enumerate(mine)]
        np.testing.assert_array_equal(at[lane::40], np.where(mine < 0, -1, np.array(ranks) * 40 + lane))


def test_a_branch_with_a_loop_of_its_threads_has_no_barrier(tmp_path: Path) -> None:
    path = tmp_path / "counted.py"
    path.write_text(COUNTED.replace("T.ceildiv(N, 40)", "t").replace("N", "1000"), encoding="utf-8")
    with pytest.raises(tile2cu.Error, match="a barrier is needed here, inside a branch that diverges"):
        tile2cu.emit(path)


NESTED = """
import tilelang.language as T

@T.prim_func
def nested(X: T.Tensor((8, 64), "int32"), Y: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=192):
        S = T.alloc_shared((9 * 64,), "int32")
        t = T.get_thread_binding()
        if t >= 128:
            w = t - 128
            for i in T.serial(8):
                S[(i + 1) * 64 + w] = X[i, w]
            if w < 64:
                S[w] = 0
                for k in T.serial(8):
                    S[(k + 1) * 64 + (w + 1) % 64] = S[(k + 1) * 64 + (w + 1) % 64] + S[k * 64 + w]
        T.sync_threads()
        if t < 64:
            Y[t] = S[8 * 64 + t]
"""


def test_branches_inside_of_one_another(tmp_path: Path) -> None:
    path = tmp_path / "nested.py"
    path.write_text(NESTED, encoding="utf-8")
    kernel = tile2cu.load(path, target="cuda:sm_90a", device="cpu", check=True)
    x, y = RNG.integers(-9, 10, (8, 64)).astype(np.int32), np.zeros(64, np.int32)
    kernel(x, y)
    total = np.zeros(64, np.int32)
    for row in x:
        total = row + np.roll(total, 1)
    np.testing.assert_array_equal(y, total)
