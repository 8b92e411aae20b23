"""The engine finds values that nothing has written where they are stored to a tensor, with the line of the store."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
FLOATS = ("float16", "bfloat16", "float32", "float64")

READ = """
        taken = T.alloc_fragment((64, 32), {dtype!r})
        {first}
        for i, j in T.Parallel(64, 32):
            C[i, j] = taken[i, j]  # stores
"""
RESCALED = """
        taken = T.alloc_fragment((64, 32), {dtype!r})
        {first}
        for i, j in T.Parallel(64, 32):
            taken[i, j] = -taken[i, j] * 0.5 + A[i, j]
        for i, j in T.Parallel(64, 32):
            C[i, j] = taken[i, j]  # stores
"""
COPIED = """
        taken = T.alloc_fragment((64, 32), {dtype!r})
        {first}
        T.copy(taken, C)  # stores
"""
STAGED = """
        taken = T.alloc_fragment((64, 32), {dtype!r})
        staged = T.alloc_shared((64, 32), {dtype!r})
        {first}
        T.copy(taken, staged)
        T.copy(staged, C)  # stores
"""
REDUCED = """
        taken = T.alloc_fragment((64, 32), {dtype!r})
        sums = T.alloc_fragment((64,), {dtype!r})
        {first}
        T.reduce_sum(taken, sums, dim=1)
        for i, j in T.Parallel(64, 32):
            C[i, j] = sums[i]  # stores
"""
PARTLY = """
        taken = T.alloc_fragment((64, 32), {dtype!r})
        {first}
        for i, j in T.Parallel(64, 32):
            if i < 63:
                taken[i, j] = A[i, j]
        T.copy(taken, C)  # stores
"""
PRIVATE = """
        taken = T.alloc_local((2, 4), {dtype!r})
        {first}
        for i, j in T.Parallel(64, 32):
            for t in T.serial(3):
                taken[1, t] = A[i, j]
            taken[1, 3] += A[i, j]
            C[i, j] = taken[1, 0] + taken[1, 3]  # stores
"""
FAULTS = {
    "private": PRIVATE,
    "read": READ,
    "rescaled": RESCALED,
    "copied": COPIED,
    "staged": STAGED,
    "reduced": REDUCED,
    "partly": PARTLY,
}
CONVERTED = """
        wide = T.alloc_fragment((64, 32), {wide!r})
        narrow = T.alloc_fragment((64, 32), {narrow!r})
        {first}
        T.copy(wide, narrow)
        for i, j in T.Parallel(64, 32):
            C[i, j] = narrow[i, j] + narrow[i, j]  # stores
"""
PADDED = """
        taken = T.alloc_fragment((64, 32), {dtype!r})
        staged = T.alloc_shared((64, 32), {dtype!r})
        for i, j in T.Parallel(64, 32):
            if i < 40:
                taken[i, j] = A[i, j]
        T.copy(taken, staged)
        for i, j in T.Parallel(64, 32):
            C[i, j] = T.if_then_else(i < 40, staged[i, j], A[i, j])
"""


def kernel(folder: Path, target: str, body: str, dtype: str, **names: str) -> Kernel:
    params = f"A: T.Tensor((64, 32), {dtype!r}), C: T.Tensor((64, 32), {dtype!r})"
    text = body.format(**{"first": "", "dtype": dtype, **names})
    return load_body(folder, text, params, target=target, threads=128)


def run(small: Kernel, dtype: str) -> None:
    if dtype == "bfloat16":
        torch = pytest.importorskip("torch")
        small(torch.ones((64, 32), dtype=torch.bfloat16))
    else:
        small(np.ones((64, 32), dtype))


def found(small: Kernel, dtype: str) -> None:
    with pytest.raises(CheckError, match="uninitialised value stored") as error:
        run(small, dtype)
    assert "# stores" in str(error.value), "the line of the store is shown"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_value_that_nothing_has_written_is_reported_where_it_is_stored(
    fault: str, dtype: str, target: str, tmp_path: Path
) -> None:
    found(kernel(tmp_path, target, FAULTS[fault], dtype), dtype)


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("fault", FAULTS)
def test_values_that_were_written_are_stored_in_silence(fault: str, dtype: str, target: str, tmp_path: Path) -> None:
    run(kernel(tmp_path, target, FAULTS[fault], dtype, first="T.clear(taken)"), dtype)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_an_integer_that_nothing_has_written_is_reported_where_it_is_stored(
    dtype: str, target: str, tmp_path: Path
) -> None:
    found(kernel(tmp_path, target, READ, dtype), dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_integers_that_were_written_are_stored_in_silence(dtype: str, tmp_path: Path) -> None:
    run(kernel(tmp_path, "cuda:sm_80", READ, dtype, first="T.clear(taken)"), dtype)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
def test_a_conversion_does_not_hide_that_nothing_wrote_a_value(wide: str, narrow: str, tmp_path: Path) -> None:
    found(kernel(tmp_path, "cuda:sm_80", CONVERTED, narrow, wide=wide, narrow=narrow), narrow)


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows_that_nothing_wrote_and_no_result_needs_are_not_reported(dtype: str, target: str, tmp_path: Path) -> None:
    run(kernel(tmp_path, target, PADDED, dtype), dtype)
