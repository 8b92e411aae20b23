"""Kernels in which what a rewrite or a schedule moves depends on what it moves over: right, whatever is decided.

Each file of kernels/ once was wrong. The reference interpreter runs the program as the user wrote it. Those of
kernels/unsupported have no right source: the diagnostic whose code their first line names says so.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.conformance.comparison import tolerance
from tests.conformance.reference import interpret
from tests.differential.build import quick_load
from tile2cu.api import emit_program
from tile2cu.core.dtype import DType
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, Program
from tile2cu.frontend import programs
from tile2cu.targets import find

KERNELS = sorted((Path(__file__).parent / "kernels").glob("*.py"))
UNSUPPORTED = sorted((Path(__file__).parent / "kernels" / "unsupported").glob("*.py"))
SCALARS = {"limit": 40, "length": 200, "unlimited": 2**31 - 1, "below": -(2**31), "row": 96, "first": 3}


def integers(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    return np.random.default_rng(1).integers(-2, 3, shape).astype(dtype.name)


def problem(path: Path, target: str) -> tuple[Program, dict[str, object]]:
    """A kernel's program, and arguments for it."""
    (program,) = programs(path, path.read_text(encoding="utf-8"), target=find(target), bindings={"N": 256})
    return program, {
        param.name: integers(param.static_shape, param.dtype) if isinstance(param, Buffer) else SCALARS[param.name]
        for param in program.params
    }


@pytest.mark.sweep(every=6)
@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
def test_kernel_equals_the_interpreter(path: Path, target: str, tmp_path: Path) -> None:
    program, given = problem(path, target)
    expected = interpret(program, given)
    kernel = quick_load(emit_program(program, find(target)), tmp_path, ("round-robin", "shuffle"))
    kernel(**given)
    limits = tolerance(program, given, wgmma=True)
    for param in program.params:
        if isinstance(param, Buffer):
            fault = limits.faults(np.asarray(given[param.name]), expected[param.name], param.dtype)
            assert not fault, f"{param.name}: {fault}"


@pytest.mark.parametrize("path", UNSUPPORTED, ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80", "hip:gfx942"])
def test_kernel_is_unsupported(path: Path, target: str) -> None:
    program, _ = problem(path, target)
    with pytest.raises(Tile2CuError) as raised:
        emit_program(program, find(target))
    assert path.read_text(encoding="utf-8").startswith(f"# {raised.value.code}\n")
