"""The engine finds MMAs that add to accumulators which nothing has written, with the line of the T.gemm."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel

BODY = """
        A_shared = T.alloc_shared((64, 64), {dtype!r})
        C_local = T.alloc_fragment((64, 64), {accumulator!r})
        T.copy(A, A_shared)
        {first}
        for k in T.serial(2):
            T.gemm(A_shared, A_shared, C_local, transpose_B=True{clear})  # adds
        T.copy(C_local, C)
"""
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")


def kernel(folder: Path, target: str, *, first: str = "", clear: str = "", types: tuple[str, str]) -> Kernel:
    dtype, accumulator = types
    body = BODY.format(first=first, clear=clear, dtype=dtype, accumulator=accumulator)
    params = f"A: T.Tensor((64, 64), {dtype!r}), C: T.Tensor((64, 64), {accumulator!r})"
    return load_body(folder, body, params, target=target, threads=128)


@pytest.mark.sweep(cases=3)
@pytest.mark.parametrize(
    ("target", "types"),
    [
        *((target, ("float16", "float32")) for target in TARGETS),
        ("cuda:sm_80", ("int8", "int32")),
        ("cuda:sm_80", ("float16", "float16")),
        ("cuda:sm_90a", ("float16", "float16")),
        ("cuda:sm_80", ("float64", "float64")),
        ("hip:gfx942", ("float64", "float64")),
        ("cuda:sm_80", ("float16", "float64")),
        ("hip:gfx942", ("int8", "int32")),
    ],
)
def test_an_accumulator_that_nothing_clears_is_reported(target: str, types: tuple[str, str], tmp_path: Path) -> None:
    faulty = kernel(tmp_path, target, types=types)
    with pytest.raises(CheckError, match="uninitialised accumulator") as found:
        faulty(np.ones((64, 64), types[0]))
    assert "# adds" in str(found.value), "the line of the T.gemm is shown"


RESCALED = """
        A_shared = T.alloc_shared((64, 64), "float16")
        C_local = T.alloc_fragment((64, 64), "float32")
        T.copy(A, A_shared)
        {first}
        for k in T.serial(2):
            for i, j in T.Parallel(64, 64):
                C_local[i, j] = C_local[i, j] * 0.5
            T.gemm(A_shared, A_shared, C_local, transpose_B=True)  # adds
        T.copy(C_local, C)
"""


def rescaled(folder: Path, target: str, *, first: str = "") -> Kernel:
    params = "A: T.Tensor((64, 64), 'float16'), C: T.Tensor((64, 64), 'float32')"
    return load_body(folder, RESCALED.format(first=first), params, target=target, threads=128)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_a_rescale_does_not_hide_that_nothing_wrote_an_accumulator(target: str, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="uninitialised accumulator") as found:
        rescaled(tmp_path, target)(np.ones((64, 64), np.float16))
    assert "# adds" in str(found.value), "the line of the T.gemm is shown"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_accumulators_that_are_cleared_are_rescaled_in_silence(target: str, tmp_path: Path) -> None:
    sound = rescaled(tmp_path, target, first="T.clear(C_local)")
    np.testing.assert_array_equal(sound(np.ones((64, 64), np.float16)), np.full((64, 64), 96, np.float32))


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("cleared", [{"first": "T.clear(C_local)"}, {"clear": ", clear_accum=k == 0"}])
def test_accumulators_that_are_cleared_are_not(target: str, cleared: dict[str, str], tmp_path: Path) -> None:
    sound = kernel(tmp_path, target, types=("float16", "float32"), **cleared)
    np.testing.assert_array_equal(sound(np.ones((64, 64), np.float16)), np.full((64, 64), 128, np.float32))


LOOPED = """
        A_shared = T.alloc_shared((20, 16), "float16")
        C_local = T.alloc_fragment((20, 20), "float64")
        T.copy(A, A_shared)
        for i, j in T.Parallel(20, 20):
            if i < {rows}:
                C_local[i, j] = 1.0
        T.gemm(A_shared, A_shared, C_local, transpose_B=True)  # adds
        T.copy(C_local, C)
"""


def looped(folder: Path, rows: int) -> Kernel:
    params = "A: T.Tensor((20, 16), 'float16'), C: T.Tensor((20, 20), 'float64')"
    kernel = load_body(folder, LOOPED.format(rows=rows), params, threads=128)
    assert "tl::gemm_fma(" in kernel.source
    return kernel


def test_registers_beyond_the_accumulator_need_not_be_written(tmp_path: Path) -> None:
    """400 elements are not a whole number for each of 128 threads."""
    np.testing.assert_array_equal(looped(tmp_path, 20)(np.ones((20, 16), np.float16)), np.full((20, 20), 17.0))


def test_an_accumulator_that_a_loop_leaves_partly_unwritten_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="uninitialised accumulator") as found:
        looped(tmp_path, 19)(np.ones((20, 16), np.float16))
    assert "# adds" in str(found.value), "the line of the T.gemm is shown"
