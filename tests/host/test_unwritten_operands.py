"""Rows of an MMA operand that nothing has written are a warning, and a finding where a result depends on them."""

from pathlib import Path

import numpy as np
import pytest

from tests.host.kernels import load_body
from tile2cu_runtime import CheckError, Kernel

TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")
PADDED = """
        S = T.alloc_shared({shape}, {dtype!r})
        Q = T.alloc_shared((64, 64), {dtype!r})
        acc = T.alloc_fragment((64, 64), {into!r})
        for i, j in T.Parallel(64, 64):
            if i < 40:
                S[{place}] = A[i, j]
        T.copy(B, Q)
        T.clear(acc)
        for k in T.serial(2):
            T.gemm(S, Q, acc, transpose_A={transposed}, transpose_B={transposed})  # multiplies
        for i, j in T.Parallel(64, 64):
            if i < n:
                C[i, j] = acc[i, j]  # stores
            else:
                C[i, j] = 0
"""
ALONG_K = PADDED.replace("if i < 40", "if j < 40")


def kernel(folder: Path, body: str, target: str, dtype: str, *, transposed: bool = False) -> Kernel:
    into = "int32" if dtype == "int8" else "float32"
    params = f"A: T.Tensor((64, 64), {dtype!r}), B: T.Tensor((64, 64), {dtype!r}), n: T.int32"
    place = "j, i" if transposed else "i, j"
    text = body.format(shape=(64, 64), dtype=dtype, into=into, place=place, transposed=transposed)
    return load_body(folder, text, f"{params}, C: T.Tensor((64, 64), {into!r})", target=target, threads=128)


def run(small: Kernel, dtype: str, rows: int) -> None:
    if dtype == "bfloat16":
        torch = pytest.importorskip("torch")
        ones = torch.ones((64, 64), dtype=torch.bfloat16)
        found = small(ones, ones, rows)
    else:
        found = small(np.ones((64, 64), dtype), np.ones((64, 64), dtype), rows)
    np.testing.assert_array_equal(np.asarray(found)[:rows], np.full((rows, 64), 128))
    np.testing.assert_array_equal(np.asarray(found)[rows:], np.zeros((64 - rows, 64)))


CASES = [
    (target, dtype, transposed)
    for target in TARGETS
    for dtype in ("float16", "bfloat16", "float32")
    for transposed in (False, True)
    if not (transposed and dtype == "float32" and target == "cuda:sm_90a")  # wgmma reads float32 K-major only
]


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("target", "dtype", "transposed"), CASES)
def test_rows_that_no_result_depends_on_are_one_warning(
    target: str, dtype: str, transposed: bool, tmp_path: Path
) -> None:
    small = kernel(tmp_path, PADDED, target, dtype, transposed=transposed)
    run(small, dtype, 40)
    assert small.report is not None
    assert small.report.is_clean
    (warning,) = small.report.warnings
    assert warning.kind == "uninitialised MMA operand"
    assert "# multiplies" in str(small.report)
    assert "no findings, 1 warning" in str(small.report)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize(("target", "dtype", "transposed"), CASES)
def test_a_result_that_depends_on_them_is_reported_where_it_is_stored(
    target: str, dtype: str, transposed: bool, tmp_path: Path
) -> None:
    small = kernel(tmp_path, PADDED, target, dtype, transposed=transposed)
    with pytest.raises(CheckError, match="uninitialised value stored") as found:
        run(small, dtype, 41)
    assert {finding.kind for finding in found.value.report.findings} == {"uninitialised value stored"}
    assert "# stores" in str(found.value)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_columns_of_k_that_nothing_wrote_are_reported_for_every_row(target: str, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="uninitialised value stored"):
        run(kernel(tmp_path, ALONG_K, target, "float16"), "float16", 1)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_operands_of_integers_are_reported_where_they_are_read(target: str, tmp_path: Path) -> None:
    """No integer shows that nothing has written it."""
    with pytest.raises(CheckError, match="uninitialised shared read") as found:
        run(kernel(tmp_path, PADDED, target, "int8"), "int8", 40)
    assert "# multiplies" in str(found.value)
