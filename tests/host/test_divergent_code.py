"""Branches and loops that threads take differently, and tiles that they share: right on every target, or a diagnostic.

The reference interpreter states what is right: one statement after the other, all threads side by side. The kernels are
in divergent/.
"""

from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest

from tests.conformance.reference import interpret
from tests.differential.build import quick_load
from tests.host.divergent import arms, exits, loops_and_groups
from tile2cu.api import emit_program
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Program
from tile2cu.frontend import programs
from tile2cu.targets import find

_TEXT = """\
import tilelang
import tilelang.language as T


@tilelang.jit
def small():
    @T.prim_func
    def body(X: T.Tensor((4, 256), "int32"), Y: T.Tensor((4, 256), "int32")):
        with T.Kernel(1, threads={threads}) as bx:
{statements}
    return body
"""
KERNELS = arms.KERNELS | exits.KERNELS | loops_and_groups.LOOPS | loops_and_groups.GROUPS
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "hip:gfx942")


def program_of(name: str, target: str) -> Program:
    threads = 256 if name in loops_and_groups.GROUPS else 128
    statements = indent(dedent(KERNELS[name]).strip("\n"), " " * 12)
    (program,) = programs(None, _TEXT.format(threads=threads, statements=statements), target=find(target))
    return program


def test_no_kernel_hides_another() -> None:
    tables = (arms.KERNELS, exits.KERNELS, loops_and_groups.LOOPS, loops_and_groups.GROUPS)
    assert len(KERNELS) == sum(map(len, tables))


@pytest.mark.sweep(every=8)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_equals_the_interpreter(name: str, target: str, tmp_path: Path) -> None:
    program = program_of(name, target)
    rng = np.random.default_rng(1)
    given = {tensor: rng.integers(-4, 5, (4, 256)).astype(np.int32) for tensor in "XY"}
    if target.startswith("hip") and "T.ws(" in KERNELS[name]:
        with pytest.raises(Tile2CuError, match="groups of its threads"):
            emit_program(program, find(target))
        return
    expected = interpret(program, given)
    quick_load(emit_program(program, find(target)), tmp_path, ("round-robin", "reverse", "shuffle"))(**given)
    np.testing.assert_array_equal(given["Y"], expected["Y"])


@pytest.mark.parametrize("name", loops_and_groups.UNSUPPORTED)
@pytest.mark.parametrize("target", TARGETS)
def test_kernel_is_unsupported(name: str, target: str) -> None:
    code, statements = loops_and_groups.UNSUPPORTED[name]
    text = _TEXT.format(threads=128, statements=indent(dedent(statements).strip("\n"), " " * 12))
    (program,) = programs(None, text, target=find(target))
    with pytest.raises(Tile2CuError) as raised:
        emit_program(program, find(target))
    assert raised.value.code == code
