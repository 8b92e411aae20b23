"""Votes of a block on AMD: waves exchange counts through LDS, one wave needs none; in loops, and without races."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.amdgcn.chips import require_compiler
from tests.amdgcn.code import assert_well_compiled
from tile2cu_runtime import Kernel

RNG = np.random.default_rng(7)
KERNELS = Path(__file__).resolve().parents[1] / "host" / "dependence" / "kernels"
SOURCE = """
import tilelang
import tilelang.language as T


@tilelang.jit
def votes(N, threads=256):
    @T.prim_func
    def body(X: T.Tensor((N,), "int32"), Left: T.Tensor((8,), "int32"), Y: T.Tensor((N,), "int32")):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
            tx = T.get_thread_binding()
            n = T.alloc_var("int32", init=0)
            n = T.syncthreads_count(X[bx * threads + tx] > 3)
            for k in T.serial(4):
                n = n + T.syncthreads_or(X[bx * threads + tx] > k + 3) * 10000
                n = n + T.syncthreads_and(X[bx * threads + tx] > k - 3) * 100000
            while Left[bx] > 0:
                if tx == threads - 1:
                    Left[bx] = Left[bx] - 1
            Y[bx * threads + tx] = n
    return body
"""


def load(folder: Path, threads: int, device: str, chip: str = "gfx942", style: str = "tl") -> Kernel:
    path = folder / "votes.py"
    path.write_text(SOURCE, encoding="utf-8")
    schedules = {"schedules": ("round-robin", "reverse", "shuffle")} if device == "cpu" else {}
    kernel = tile2cu.load(
        path, target=f"hip:{chip}", device=device, check=True, style=style, options=schedules, threads=threads
    )
    if device == "sim":
        assert_well_compiled(kernel)
    return kernel


def check(kernel: Kernel, threads: int) -> None:
    """Blocks of which all threads vote yes, some, and one; another wave's thread ends the block's `while`."""
    x = np.concatenate([RNG.integers(low, high, threads) for low, high in ((5, 9), (-3, 6), (-9, 4))]).astype(np.int32)
    x[2 * threads + threads // 2] = 5
    left, y = np.array([3, 0, 1, 4, 4, 4, 4, 4], np.int32), np.zeros_like(x)
    kernel(x, left, y)
    expected = [
        (each > 3).sum() + sum(10000 * (each > k + 3).any() + 100000 * (each > k - 3).all() for k in range(4))
        for each in x.reshape(-1, threads)
    ]
    np.testing.assert_array_equal(y, np.repeat(expected, threads))
    assert left.tolist() == [0, 0, 0, 4, 4, 4, 4, 4]
    assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.sweep
@pytest.mark.parametrize("threads", [64, 100, 256])
@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_votes(device: str, threads: int, tmp_path: Path) -> None:
    kernel = load(tmp_path, threads, device)
    waves = -(-threads // 64)
    assert (f"int block_votes[{waves}];" in kernel.source) == (waves > 1)
    assert ("tl::one_wave" in kernel.source) == (waves == 1)
    check(kernel, threads)


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("chip", ["gfx950", "gfx90a"])
def test_votes_of_other_targets(chip: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    require_compiler(chip, request)
    check(load(tmp_path, 192, "sim", chip), 192)


@pytest.mark.nightly
@pytest.mark.needs("ck")
@pytest.mark.parametrize("threads", [64, 256])
def test_votes_in_ck_tile(threads: int, tmp_path: Path) -> None:
    check(load(tmp_path, threads, "sim", style="ck"), threads)


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_branch_on_a_tensor_that_the_kernel_writes(device: str) -> None:
    path = KERNELS / "tensor_read_by_others_in_a_branch_on_a_tensor.py"
    kernel = tile2cu.load(path, target="hip:gfx942", device=device, check=True)
    assert "tl::any_of_block(Flag(0) > 2, block_votes)" in kernel.source
    x = RNG.integers(-9, 10, 128).astype(np.float32)
    flag, y, z = np.zeros(8, np.int32), np.zeros_like(x), np.zeros_like(x)
    kernel(flag, x, y, z)
    np.testing.assert_array_equal(z, x[::-1] + 1)
    assert flag.tolist() == [0, 4, 5, 6, 7, 8, 9, 10]
    assert kernel.report is not None and kernel.report.is_clean


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_while_on_what_its_iterations_write(device: str) -> None:
    path = KERNELS / "while_asks_what_its_iterations_write.py"
    kernel = tile2cu.load(path, target="hip:gfx942", device=device, check=True)
    table, z = np.zeros(8, np.int32), np.zeros(128, np.int32)
    kernel(table, z)
    assert z.tolist() == [5 * 2 + 3 * 3] * 128
    assert kernel.report is not None and kernel.report.is_clean
