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


# Passes name predicates and values, by these names where nothing else has them.
TILES_OF_THESE_NAMES = """
value, taken, active, running = (T.alloc_shared((128,), "int32") for _ in range(4))
tx = T.get_thread_binding()
value[tx] = X[0, tx]
value[tx] = value[tx ^ 1]
taken[tx] = 0
for k in T.serial(4):
    active[tx] = X[k, tx]
    running[tx] = X[k, tx] + 1
    if X[k, tx] > 3:
        continue
    if X[k, tx] < -3:
        break
    if X[k, tx] > 0:
        taken[tx] = active[127 - tx]
        Y[k, tx] = taken[tx ^ 1] + running[tx ^ 3] + value[tx]
"""


def program_of(name: str, target: str) -> Program:
    return program_from(KERNELS[name], target, threads=256 if name in loops_and_groups.GROUPS else 128)


def program_from(body: str, target: str, *, threads: int = 128) -> Program:
    statements = indent(dedent(body).strip("\n"), " " * 12)
    (program,) = programs(None, _TEXT.format(threads=threads, statements=statements), target=find(target))
    return program


def test_no_kernel_hides_another() -> None:
    tables = (arms.KERNELS, exits.KERNELS, loops_and_groups.LOOPS, loops_and_groups.GROUPS)
    assert len(KERNELS) == sum(map(len, tables))


@pytest.mark.sweep(cases=5)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_equals_the_interpreter(name: str, target: str, tmp_path: Path) -> None:
    program = program_of(name, target)
    if target.startswith("hip") and "T.ws(" in KERNELS[name]:
        with pytest.raises(Tile2CuError, match="groups of its threads"):
            emit_program(program, find(target))
        return
    assert_equals_the_interpreter(program, target, tmp_path)


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("target", TARGETS)
def test_what_passes_name_has_no_tile_s_name(target: str, tmp_path: Path) -> None:
    assert_equals_the_interpreter(program_from(TILES_OF_THESE_NAMES, target), target, tmp_path)


def assert_equals_the_interpreter(program: Program, target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    given = {tensor: rng.integers(-4, 5, (4, 256)).astype(np.int32) for tensor in "XY"}
    expected = interpret(program, given)
    quick_load(emit_program(program, find(target)), tmp_path, ("round-robin", "reverse", "shuffle"))(**given)
    np.testing.assert_array_equal(given["Y"], expected["Y"])


@pytest.mark.parametrize("name", loops_and_groups.UNSUPPORTED)
@pytest.mark.parametrize("target", TARGETS)
def test_kernel_is_unsupported(name: str, target: str) -> None:
    code, statements = loops_and_groups.UNSUPPORTED[name]
    program = program_from(statements, target)
    with pytest.raises(Tile2CuError) as raised:
        emit_program(program, find(target))
    assert raised.value.code == code
