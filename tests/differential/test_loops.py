"""Random pipelined loops on the CPU engine with every check on, against the reference interpreter.

`--programs N` runs one in twenty of N of them; `--programs-seed S` others.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.comparison import tolerance
from tests.conformance.reference import interpret
from tests.differential.build import quick_load
from tests.differential.loops import LENGTH, RandomLoop, random_loop
from tile2cu.api import emit_program
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, Program
from tile2cu.frontend import programs
from tile2cu.targets import find

PARTS = 4


def program_of(loop: RandomLoop, target: str) -> Program:
    (program,) = programs(None, loop.text, target=find(target), bindings={"N": 64 * LENGTH})
    return program


def check(loop: RandomLoop, target: str, folder: Path) -> str:
    """ "right", or the code of the diagnostic. Raises AssertionError where it is wrong."""
    program = program_of(loop, target)
    try:
        emitted = emit_program(program, find(target))
    except Tile2CuError as error:
        return error.code
    expected = interpret(program, loop.arguments)
    given = {name: np.copy(value) if isinstance(value, np.ndarray) else value for name, value in loop.arguments.items()}
    quick_load(emitted, folder, ("round-robin", "shuffle"))(**given)
    limits = tolerance(program, loop.arguments, wgmma=True)
    for param in program.params:
        if isinstance(param, Buffer):
            fault = limits.faults(np.asarray(given[param.name]), expected[param.name], param.dtype)
            assert not fault, f"{param.name}: {fault}\n{loop.arguments['limit']}\n{loop.text}"
    return "right"


@pytest.mark.sweep("target")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("target", ["cuda:sm_90a", "cuda:sm_80"])
def test_random_loops(target: str, part: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    count = max(request.config.getoption("--programs") // (20 * PARTS), 1)
    start = 100_000 * request.config.getoption("--programs-seed") + part * count
    outcomes: Counter[str] = Counter()
    for seed in range(start, start + count):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcomes[check(random_loop(seed), target, folder)] += 1
    assert outcomes["right"] * 2 > count, outcomes
