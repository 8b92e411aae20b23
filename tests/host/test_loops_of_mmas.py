"""Loops of MMAs that schedules and passes may easily get wrong, several to a source: as the interpreter has them."""

import re
from pathlib import Path
from textwrap import dedent, indent

import numpy as np
import pytest

from tests.conformance.comparison import tolerance
from tests.conformance.reference import interpret
from tests.differential.build import quick_load
from tests.host.hostile.loops_of_mmas import CARRIED, CLEARED, OUTSIDE, STAGED
from tile2cu.api import emit_program
from tile2cu.core.program import Buffer, Program
from tile2cu.frontend import programs
from tile2cu.targets import find

GROUPS = {"cleared": CLEARED, "staged": STAGED, "carried": CARRIED, "outside": OUTSIDE}
_SCALARS = {"one": 1, "far": 2**31 - 64, "below": -8}
_TABLES = {"F": [1, 0, -1, 2, 1, 4, -2, 0], "I": [0] * 100 + [1, -1, 1, -1] * 7}
_TENSOR = re.compile(r"(\w+): T\.Tensor")
_HEAD = "import tilelang\nimport tilelang.language as T\n\n\n@tilelang.jit\ndef several():\n    @T.prim_func\n"


def program_of(kernels: dict[str, tuple[str, str]], target: str) -> Program:
    """One program with a launch for each kernel, and tensors of its own for each: their names end in its number."""
    params, launches = [f"{name}: T.int32" for name in _SCALARS], []
    for number, (tensors, body) in enumerate(kernels.values()):
        names = rf"\b({'|'.join(_TENSOR.findall(tensors))})\b"
        tensors, body = (re.sub(names, rf"\g<1>{number}", text) for text in (tensors, body))
        params.append(tensors)
        launches.append("with T.Kernel(1, threads=128) as bx:\n" + indent(body, "    "))
    text = f"{_HEAD}    def body({', '.join(params)}):\n" + indent(dedent("\n".join(launches)), " " * 8)
    (program,) = programs(None, f"{text}\n    return body\n", target=find(target))
    return program


@pytest.mark.sweep(cases=2)
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
@pytest.mark.parametrize("group", GROUPS)
def test_loops_equal_the_interpreter(group: str, target: str, tmp_path: Path) -> None:
    kernels = GROUPS[group]
    program = program_of(kernels, target)
    assert len(program.launches) == len(kernels)
    rng = np.random.default_rng(1)
    given: dict[str, object] = dict(_SCALARS)
    for param in program.params:
        if isinstance(param, Buffer):
            table = _TABLES.get(param.name[0])
            made = rng.integers(-2, 3, param.static_shape) if table is None else np.array(table)
            given[param.name] = made.astype(param.dtype.name)
    expected = interpret(program, given, seconds=60)
    quick_load(emit_program(program, find(target)), tmp_path, ("round-robin", "shuffle"))(**given)
    limits = tolerance(program, given, wgmma=True)
    for name, exact in expected.items():
        fault = limits.faults(np.asarray(given[name]), exact, next(p.dtype for p in program.params if p.name == name))
        assert not fault, f"{list(kernels)[int(name[1:])]}: {fault}"
