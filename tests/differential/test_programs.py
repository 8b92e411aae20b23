"""Random programs on the CPU engine with every check on, against the reference interpreter.

`--programs N` runs N of them, the same in each run; `--programs-seed S` others. A failure shrinks to the smallest
program that still fails, and prints it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings

from tests.conformance.comparison import tolerance
from tests.conformance.reference import interpret, numpy_dtype
from tests.differential.build import quick_load
from tests.differential.programs import INPUT, RandomProgram, random_programs
from tile2cu.api import emit_program
from tile2cu.core.errors import Tile2CuError
from tile2cu.core.program import Buffer, Program
from tile2cu.frontend import programs
from tile2cu.targets import find
from tile2cu_runtime import LaunchError

PARTS = 2  # so that several processes share the work
SCHEDULES = ("round-robin", "shuffle")


def arguments(program: Program, random: RandomProgram) -> dict[str, np.ndarray]:
    """Small integers, and zeros for what the program writes."""
    rng = np.random.default_rng(0)
    types = {param.name: numpy_dtype(param.dtype) for param in program.params if isinstance(param, Buffer)}
    return {
        tensor.name: np.zeros(random.shape(tensor), types[tensor.name])
        if tensor.is_output
        else rng.integers(-INPUT, INPUT + 1, random.shape(tensor)).astype(types[tensor.name])
        for tensor in random.tensors
    }


def check(random: RandomProgram, folder: Path) -> str:
    """Emits, builds and runs a program: "right", or why it was refused. Raises AssertionError where it is wrong."""
    target = find(random.target)
    (program,) = programs(None, random.text, target=target)
    try:
        emitted = emit_program(program, target)
    except Tile2CuError as error:
        note(f"refused: {error}")
        return error.code
    given = arguments(program, random)
    expected = interpret(program, given)
    actual = {name: value.copy() for name, value in given.items()}
    try:
        quick_load(emitted, folder, SCHEDULES)(**actual)
    except LaunchError as error:
        assert error.name == "TL_NOT_SUPPORTED"
        return error.name
    limits = tolerance(program, given)
    types = {param.name: param.dtype for param in program.params}
    for tensor in random.tensors:
        fault = limits.faults(actual[tensor.name], expected[tensor.name], types[tensor.name])
        assert not fault, f"{tensor.name}: {fault}\n{random.text}"
        if not random.is_smooth:
            assert np.array_equal(actual[tensor.name], expected[tensor.name]), (
                f"{tensor.name} is inexact\n{random.text}"
            )
    return "right"


@pytest.mark.sweep(cases=1)
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part: int, request: pytest.FixtureRequest) -> None:
    outcomes: list[str] = []

    @seed(PARTS * request.config.getoption("--programs-seed") + part)
    @settings(
        max_examples=request.config.getoption("--programs") // PARTS,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(random_programs())
    def run(random: RandomProgram) -> None:
        note(f"{random.target}, {random.sizes}\n{random.text}")
        with tempfile.TemporaryDirectory() as folder:
            outcomes.append(check(random, Path(folder)))

    run()
    right = outcomes.count("right")
    refused = {code: outcomes.count(code) for code in sorted(set(outcomes)) if code != "right"}
    assert right >= 0.6 * len(outcomes), f"{right} of {len(outcomes)} ran, refused were {refused}"
