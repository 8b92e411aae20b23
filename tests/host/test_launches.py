"""Several kernels in one function: one call runs them in order, and what they share lies in the workspace."""

from pathlib import Path

import numpy as np
import pytest

import tile2cu
from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel, LaunchError

pytestmark = pytest.mark.binding

SPLIT = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def total(rows, columns, block=64, threads=128):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows,), "float32")):
        partial = T.alloc_global((rows, T.ceildiv(columns, block)), "float32")
        {between}
        # sum_blocks
        with T.Kernel(T.ceildiv(columns, block), rows, threads=threads) as (bx, by):
            tile = T.alloc_fragment((block,), "float32")
            result = T.alloc_fragment((1,), "float32")
            T.copy(A[by, bx * block], tile)
            T.reduce_sum(tile, result, dim=0)
            for i in T.Parallel(1):
                partial[by, bx] = result[i]
        with T.Kernel(T.ceildiv(rows, threads), threads=64) as bx:
            tile = T.alloc_fragment((threads,), "float32")
            T.clear(tile)
            for k in T.serial(T.ceildiv(columns, block)):
                for i in T.Parallel(threads):
                    tile[i] += partial[bx * threads + i, k]
            T.copy(tile, B[bx * threads])
    return main
"""


def load(folder: Path, text: str, **bindings: object) -> Kernel:
    path = folder / "total.py"
    path.write_text(text, encoding="utf-8")
    options = {"schedules": ("round-robin", "reverse", "shuffle")}
    return tile2cu.load(path, device="cpu", check=True, options=options, **bindings)


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("shape", [(1, 1), (5, 200), (130, 65), (0, 3)])
def test_launches_share_a_workspace(shape: tuple[int, int], tmp_path: Path) -> None:
    kernel = load(tmp_path, SPLIT.format(between=""))
    a = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    np.testing.assert_array_equal(kernel(a), a.sum(axis=1))


def test_workspaces_lie_side_by_side(tmp_path: Path) -> None:
    text = SPLIT.format(between='other = T.alloc_global((rows, T.ceildiv(columns, block)), "float16")').replace(
        "partial[by, bx] = result[i]", "partial[by, bx] = result[i]\n                other[by, bx] = 9.0"
    )
    a = np.arange(600, dtype=np.float32).reshape(3, 200)
    np.testing.assert_array_equal(load(tmp_path, text)(a), a.sum(axis=1))


def test_the_second_launch_sees_what_the_first_wrote_to_a_tensor(tmp_path: Path) -> None:
    text = SPLIT.format(between="").replace(
        'B: T.Tensor((rows,), "float32")', 'partial: T.Tensor((rows, 2), "float32"), B: T.Tensor((rows,), "float32")'
    )
    kernel = load(tmp_path, text.replace('partial = T.alloc_global((rows, T.ceildiv(columns, block)), "float32")', ""))
    a, partial = np.arange(300, dtype=np.float32).reshape(3, 100), np.full((3, 2), np.nan, np.float32)
    np.testing.assert_array_equal(kernel(a, partial), a.sum(axis=1))
    np.testing.assert_array_equal(partial, np.stack([a[:, :64].sum(axis=1), a[:, 64:].sum(axis=1)], axis=1))


def test_a_workspace_holds_nothing_before_it_is_written(tmp_path: Path) -> None:
    kernel = load(tmp_path, SPLIT.format(between="").replace("partial[by, bx] = result[i]", "B[by] = result[i]"))
    with pytest.raises(CheckError, match="partial"):
        kernel(np.ones((3, 100), np.float32))


def test_names_of_kernels(tmp_path: Path) -> None:
    path = tmp_path / "total.py"
    path.write_text(SPLIT.format(between="total_impl = 1"), encoding="utf-8")
    (emitted,) = tile2cu.emit(path).values()
    text = emitted.source
    assert [line for line in text.splitlines() if line.startswith("namespace")] == [
        "namespace total_impl {",
        "namespace sum_blocks {",
        "namespace launch_2 {",
    ]
    assert "A call launches at most 2 kernels: sum_blocks (total.py:13) and launch_2 (total.py:20)." in text


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("name", ["threads", "block", "rows", "Shared_", "kernel", "grid", "status", "workspace"])
def test_a_kernel_may_have_a_name_that_its_text_needs(name: str, tmp_path: Path) -> None:
    kernel = load(tmp_path, SPLIT.format(between="").replace("def total(", f"def {name}("))
    a = np.arange(1000, dtype=np.float32).reshape(5, 200)
    np.testing.assert_array_equal(kernel(a), a.sum(axis=1))


def test_a_scalar_decides_how_many_blocks_there_are(tmp_path: Path) -> None:
    text = """
import tilelang
import tilelang.language as T


@tilelang.jit
def total(block=64):
    rows, columns = T.dynamic("rows"), T.dynamic("columns")

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), last: T.int32, B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows, T.ceildiv(last, block), threads=64) as (bx, by):
            for i in T.Parallel(block):
                if by * block + i < last:
                    B[bx, by * block + i] = A[bx, by * block + i] + 1
    return main
"""
    kernel = load(tmp_path, text)
    a, b = np.arange(600, dtype=np.float32).reshape(3, 200), np.zeros((3, 200), np.float32)
    kernel(a, 100, b)
    np.testing.assert_array_equal(b, np.where(np.arange(200) < 100, a + 1, 0))
    with pytest.raises(LaunchError, match="TL_INVALID_SIZE"):
        kernel(a, 64 * 65535 + 1, b)


GROUPS = """
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2, 3])
def total(keeps=False):
    heads, groups = T.dynamic("heads, groups")

    @T.prim_func
    def main(
        A: T.Tensor((heads, 16), "tfloat32"),
        B: T.Tensor((groups, 16), "float32"),
        C: T.Tensor((heads, 16), "float32"),
        Kept: T.Tensor((heads, 16), "float32"),
    ):
        with T.Kernel(heads // T.max(heads // groups, 0), threads=32) as bx:
            for h in T.serial(heads // groups):
                for i in T.Parallel(16):
                    C[bx * (heads // groups) + h, i] = A[bx * (heads // groups) + h, i] + B[bx, i]
                    if keeps:
                        Kept[bx * (heads // groups) + h, i] = B[bx, i]
    return main
"""


def test_quotients_by_zero_are_refused_and_outputs_need_not_be_written(tmp_path: Path) -> None:
    kernel = load(tmp_path, GROUPS)
    a, b = np.arange(96, dtype=np.float32).reshape(6, 16), np.arange(48, dtype=np.float32).reshape(3, 16)
    found, kept = kernel(a, b)
    np.testing.assert_array_equal(found, a + np.repeat(b, 2, axis=0))
    assert kept.shape == (6, 16)
    with pytest.raises(LaunchError, match="TL_INVALID_SIZE"):
        kernel(a, b[:0])
    with pytest.raises(LaunchError, match="TL_INVALID_SIZE"):  # two heads of three groups: a quotient of zero
        kernel(a[:2], b)


def test_a_refused_call_does_not_repeat_the_report_of_the_call_before(tmp_path: Path) -> None:
    kernel = load_body(
        tmp_path, "Y[0] = by", 'Y: T.Tensor((M,), "int32")', grid="1, M", blocks="(bx, by)", arguments="M"
    )
    with pytest.raises(CheckError, match="race"):
        kernel(M=2)
    with pytest.raises(LaunchError, match="TL_INVALID_SIZE"):
        kernel(M=70_000)
    assert kernel.report is not None and not kernel.report.findings


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("sequences", [0, 1, 3])
def test_a_grid_with_an_extent_below_zero_is_empty(sequences: int, tmp_path: Path) -> None:
    """Offsets of sequences have one element more than there are sequences: without any, there are none to compute."""
    statements = """
        for i in T.Parallel(128):
            Y[bx, i] = offsets[bx + 1] - offsets[bx]
    """
    params = 'offsets: T.Tensor((N,), "int32"), Y: T.Tensor((3, 128), "int32")'
    kernel = load_body(tmp_path, statements, params, grid="N - 1, 1", blocks="(bx, by)", arguments="N")
    offsets, lengths = np.array([0, 4, 4, 9], np.int32)[:sequences], np.full((3, 128), -1, np.int32)
    kernel(offsets, lengths)
    expected = np.full((3, 128), -1)
    expected[: max(sequences - 1, 0)] = np.diff(offsets)[:, None]
    np.testing.assert_array_equal(lengths, expected)
