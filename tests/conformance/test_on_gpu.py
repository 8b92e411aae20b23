"""What is collected for a GPU's run, and how its results are judged; a GPU runs it where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conformance import on_gpu
from tests.conformance.kernels import small_program
from tile2cu.api import emit_program
from tile2cu.targets import find

DOUBLE = """
    for i in T.Parallel(64):
        Y[i] = X[i] * 2
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = small_program(DOUBLE, 'X: T.Tensor((64,), "float16"), Y: T.Tensor((64,), "float16")')
    assert on_gpu._keep(program, emit_program(program, find("cuda:sm_80")), tmp_path / "000" / "0", "double", 5.0)
    return tmp_path / "000" / "0"


def leave(folder: Path, change: float) -> None:
    """What a run leaves there: the expected results, one of them changed."""
    expected = dict(np.load(folder / "expected.npz"))
    expected["Y"].view(np.float16)[5] += change
    np.savez(folder / "actual.npz", **expected)
    (folder / "error").write_text("", encoding="utf-8")


def test_results_are_compared(folder: Path) -> None:
    assert list(on_gpu.compare(folder.parents[1])) == [("double", "it was not run")]
    leave(folder, 0)
    assert list(on_gpu.compare(folder.parents[1])) == [("double", "")]
    leave(folder, 1)
    ((_, fault),) = on_gpu.compare(folder.parents[1])
    assert fault.startswith("Y: 1 of 64 elements are off")


def test_rows_of_strided_tensors_lie_apart(tmp_path: Path) -> None:
    statements = """
        for i, j in T.Parallel(8, 8):
            Y[i, j] = X[i, j] * 2
    """
    params = 'X: T.Tensor((8, 8), "float16"), Y: T.StridedTensor((8, 8), (S, 1), "float16")'
    program = small_program(statements, params, head='S = T.dynamic("S")')
    assert on_gpu._keep(program, emit_program(program, find("cuda:sm_80")), tmp_path / "000" / "0", "double", 5.0)
    x, y = (np.load(tmp_path / "000" / "0" / "expected.npz")[name].view(np.float16) for name in "XY")
    assert len(y) > len(x), "there are gaps"
    leave(tmp_path / "000" / "0", 0)
    assert list(on_gpu.compare(tmp_path)) == [("double", "")]
    leave(tmp_path / "000" / "0", 1)
    ((_, fault),) = on_gpu.compare(tmp_path)
    assert fault.startswith("Y: 1 of 64 elements are off")


def test_a_fault_of_the_run_is_told(folder: Path) -> None:
    (folder / "error").write_text("LaunchError: tl_status 4", encoding="utf-8")
    assert list(on_gpu.compare(folder.parents[1])) == [("double", "LaunchError: tl_status 4")]


@pytest.mark.needs("gpu")
def test_on_a_gpu(folder: Path) -> None:
    script = str(Path(on_gpu.__file__))
    subprocess.run(
        [sys.executable, script, "run", str(folder.parents[1]), "--arch", on_gpu.prebuilt.device_arch()], check=True
    )
    assert list(on_gpu.compare(folder.parents[1])) == [("double", "")]
